// A memory: features of a step and a state, to features that know the past and the next state.
#pragma once

#include <array>
#include <vector>

#include "surefoot/parts/part.hpp"
#include "surefoot/recurrence.hpp"

namespace surefoot {

/// Parts that a memory's state may have.
inline constexpr std::size_t kMostStateParts = 4;

/// The state of a block of rows: part k is [rows, size of part k], and may be changed in place.
struct StateRows {
  std::array<const float*, kMostStateParts> before;
  std::array<float*, kMostStateParts> after;
};

/// A layer of cells that learns: gates from the layer below, and from its own past.
struct CellLayer {
  LayerNames input, past;
  std::size_t num_gates, hidden;
  std::size_t num_parts;  // of its state
  bool has_one_gradient;  // of the gates, whichever side they come from
};

/// What a layer of cells reads and writes over packed sequences: B samples, S sequences, H hidden.
struct CellPass {
  MatrixView gates_x;                                // [B, gates * H]
  std::array<const float*, kMostStateParts> before;  // [S, H] each
  std::array<float*, kMostStateParts> states;        // [B, H] each; the first is what the layer gives
  float* kept;                                       // [B, 4 * H] for the way back
  MatrixView grad_output;                            // [B, H]
  float *grad_gates_x, *grad_gates_past;             // [B, gates * H]
  std::size_t grad_stride;                           // of both
  float* past;                                       // [B, H]: what the weights of the past were multiplied with
  std::array<float*, kMostStateParts> grad_before;   // [S, H] each
};

class Memory : public Part {
 public:
  using Part::Part;

  /// Numbers a row of each part of the state, all zero where an episode starts.
  virtual std::vector<std::size_t> state_sizes() const = 0;
  /// Size of what it gives for features of size `in`.
  virtual std::size_t output_size(std::size_t in) const = 0;

  /// One step of rows. The result stands as long as the state after it.
  virtual MatrixView step(const PartRows& rows, const StateRows& state) const = 0;

  /// The layers that learn, the first one below.
  virtual std::vector<CellLayer> cells() const { return {}; }
  /// One layer over all steps of some sequences, and the way back.
  virtual void forward(const Recurrence&, const CellPass&, Sequences) const {}
  virtual void backward(const Recurrence&, const CellPass&, Sequences) const {}
};

}  // namespace surefoot
