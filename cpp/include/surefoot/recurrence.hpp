// GRU and LSTM layers over many sequences, forward and backward, for the learner.
//
// The results of a sequence depend only on that sequence, so they are the same for any number of threads.
#pragma once

#include <cstddef>
#include <functional>

#include "surefoot/kernels.hpp"
#include "surefoot/layer.hpp"
#include "surefoot/packed_steps.hpp"
#include "surefoot/thread_pool.hpp"

namespace surefoot {

/// A layer's recurrent part: `gates * hidden` outputs of `hidden` inputs.
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

// B samples, S sequences, H hidden. `gates` holds what the backward pass needs: [B, 4 * H].

struct LstmForward {
  MatrixView gates_x;  // [B, 4 * H]
  const float* h0;     // [S, H]
  const float* c0;
  float* gates;
  float* h;  // [B, H]
  float* c;
};

struct LstmBackward {
  const float* gates;
  const float* h0;
  const float* c0;
  const float* h;
  const float* c;
  MatrixView grad_h;         // [B, H]
  const float* grad_h_last;  // [S, H], or null: zero
  const float* grad_c_last;
  float* grad_gates;        // [B, 4 * H]: gradient of gates_x and of the recurrent product, which are equal
  std::size_t grad_stride;  // of grad_gates
  float* h_before;          // [B, H]: the states that were multiplied with the weights
  float* grad_h0;           // [S, H]
  float* grad_c0;
};

struct GruForward {
  MatrixView gates_x;  // [B, 3 * H]
  const float* h0;
  float* gates;
  float* h;
};

struct GruBackward {
  const float* gates;
  const float* h0;
  const float* h;
  MatrixView grad_h;
  const float* grad_h_last;
  float* grad_gates_x;      // [B, 3 * H]
  float* grad_gates_h;      // [B, 3 * H]: of weight * h_before + bias
  std::size_t grad_stride;  // row stride of both
  float* h_before;
  float* grad_h0;
};

void lstm_forward(const Recurrence& layer, const LstmForward& pass, Sequences part);
void lstm_backward(const Recurrence& layer, const LstmBackward& pass, Sequences part);
void gru_forward(const Recurrence& layer, const GruForward& pass, Sequences part);
void gru_backward(const Recurrence& layer, const GruBackward& pass, Sequences part);

/// Copies the state after the last step of each sequence from [B, H] to [S, H].
void copy_last(const PackedSteps& steps, std::size_t hidden, const float* states, float* last);

/// A stand-alone layer: packs the weights and divides the sequences among the threads of a pool.
class PooledRecurrence {
 public:
  PooledRecurrence(const PackedSteps& steps, std::size_t gates, std::size_t hidden, const float* weight,
                   const float* bias, ThreadPool& pool, const Kernels& kernels = surefoot::kernels());

  /// Runs one of the functions above on all sequences.
  template <class Pass>
  void run(void (*function)(const Recurrence&, const Pass&, Sequences), const Pass& pass) {
    over_sequences([&](Sequences part) { function(layer_, pass, part); });
  }

 private:
  void over_sequences(const std::function<void(Sequences)>& work) const;

  std::size_t gates_;
  ThreadPool& pool_;
  Layer weight_;
  TransposedLayer transposed_;
  AlignedFloats scratch_;
  Recurrence layer_;
};

}  // namespace surefoot
