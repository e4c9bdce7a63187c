// GRU and LSTM layers over many sequences, forward and backward, for the learner.
//
// The results of a sequence depend only on that sequence, so they are the same for any number of threads.
#pragma once

#include <array>
#include <cstddef>

#include "surefoot/kernels.hpp"
#include "surefoot/layer.hpp"
#include "surefoot/packed_steps.hpp"
#include "surefoot/thread_pool.hpp"

namespace surefoot {

/// Maximum number of tensors of a state.
inline constexpr std::size_t kMostStateTensors = 4;

/// A kind of cells. The first tensor of their state is h; the last one is carried from step to step besides the gates.
struct CellKind {
  std::size_t num_gates, num_tensors;
  bool has_one_gradient;  // whether the gradients of the gates by input and by past state are equal
  void (*step)(const CellStep& step);
  void (*gradient)(const CellGradient& step);
};

CellKind gru_cells(const Kernels& kernels);
CellKind lstm_cells(const Kernels& kernels);

/// The recurrent weights of a layer: `gates * hidden` outputs of `hidden` inputs.
struct Recurrence {
  const PackedSteps& steps;
  std::size_t hidden;
  const Layer& weight;                // forward
  const TransposedLayer& transposed;  // backward
  const Kernels& kernels;
  float* scratch;  // [S, stride of the weight's result], forward or backward
};

/// A range of sequences: the work of one thread.
struct Sequences {
  std::size_t begin, end;
};

template <class Number>
using StateTensors = std::array<Number*, kMostStateTensors>;

/// Arguments of a layer of cells over packed sequences: B samples, S sequences, H hidden. A forward pass uses the first
/// four.
struct CellPass {
  MatrixView gates_x;                     // [B, gates * H]
  StateTensors<const float> before;       // [S, H] each
  StateTensors<float> states;             // [B, H] each; the first is the output of the layer
  float* kept;                            // [B, 4 * H] for the backward pass
  MatrixView grad_output;                 // [B, H]
  StateTensors<const float> grad_last;    // [S, H] each; null: zero
  float *grad_gates_x, *grad_gates_past;  // [B, gates * H]; the same array if they are equal
  std::size_t grad_stride;                // row stride of both
  float* past;                            // [B, H]: the states that were multiplied with the recurrent weights
  StateTensors<float> grad_before;        // [S, H] each
};

void forward(const CellKind& kind, const Recurrence& layer, const CellPass& pass, Sequences some);
void backward(const CellKind& kind, const Recurrence& layer, const CellPass& pass, Sequences some);

/// Copies the state after the last step of each sequence from [B, H] to [S, H].
void copy_last(const PackedSteps& steps, std::size_t hidden, const float* states, float* last);

/// A stand-alone layer: packs the weights and divides the sequences among the threads of a pool. Runs forward if there
/// is a bias, else backward.
class PooledRecurrence {
 public:
  PooledRecurrence(const CellKind& kind, const PackedSteps& steps, std::size_t hidden, const float* weight,
                   const float* bias, ThreadPool& pool, const Kernels& kernels = surefoot::kernels());

  void run(const CellPass& pass) const;

 private:
  CellKind kind_;
  ThreadPool& pool_;
  Layer weight_;
  TransposedLayer transposed_;
  AlignedFloats scratch_;
  Recurrence layer_;
};

}  // namespace surefoot
