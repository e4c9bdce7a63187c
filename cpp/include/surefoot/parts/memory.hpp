// A memory: maps the features and the state of a step to features that depend on the past, and the next state.
#pragma once

#include <array>
#include <vector>

#include "surefoot/parts/part.hpp"
#include "surefoot/recurrence.hpp"

namespace surefoot {

/// Maximum number of parts of a memory's state.
inline constexpr std::size_t kMostStateParts = 4;

/// The state of a block of rows: part k is [rows, size of part k]; may be updated in place.
struct StateRows {
  std::array<const float*, kMostStateParts> before;
  std::array<float*, kMostStateParts> after;
};

/// A layer of recurrent cells: its gates depend on the layer below and on its own past state.
struct CellLayer {
  LayerNames input, past;
  std::size_t num_gates, hidden;
  std::size_t num_parts;  // number of parts of its state
  bool has_one_gradient;  // whether the gradients of the gates by input and by past are equal
};

/// Arguments of a layer of cells over packed sequences: B samples, S sequences, H hidden.
struct CellPass {
  MatrixView gates_x;                                // [B, gates * H]
  std::array<const float*, kMostStateParts> before;  // [S, H] each
  std::array<float*, kMostStateParts> states;        // [B, H] each; the first is the output of the layer
  float* kept;                                       // [B, 4 * H] for the backward pass
  MatrixView grad_output;                            // [B, H]
  float *grad_gates_x, *grad_gates_past;             // [B, gates * H]
  std::size_t grad_stride;                           // row stride of both
  float* past;  // [B, H]: the states that were multiplied with the recurrent weights
  std::array<float*, kMostStateParts> grad_before;  // [S, H] each
};

class Memory : public Part {
 public:
  using Part::Part;

  /// Numbers per row of each part of the state. All are zero at the start of an episode.
  virtual std::vector<std::size_t> state_sizes() const = 0;
  /// Output size for features of size `in`.
  virtual std::size_t output_size(std::size_t in) const = 0;

  /// Runs one step of rows. The result is valid as long as the state after it.
  virtual MatrixView step(const PartRows& rows, const StateRows& state) const = 0;

  /// The layers of recurrent cells, from the bottom.
  virtual std::vector<CellLayer> cells() const { return {}; }
  /// Run one layer over all steps of some sequences, forward or backward.
  virtual void forward(const Recurrence&, const CellPass&, Sequences) const {}
  virtual void backward(const Recurrence&, const CellPass&, Sequences) const {}
};

}  // namespace surefoot
