// A memory: maps the features and the state of a step to features that depend on the past, and the next state.
#pragma once

#include <array>
#include <vector>

#include "surefoot/parts/part.hpp"
#include "surefoot/recurrence.hpp"

namespace surefoot {

/// The state of a block of rows: tensor k is [rows, size of tensor k]; may be updated in place.
struct StateRows {
  StateTensors<const float> before;
  StateTensors<float> after;
};

/// A layer of recurrent cells: its gates depend on the layer below and on its own past state.
struct CellLayer {
  LayerNames input, past;
  CellKind kind;
  std::size_t hidden;
};

class Memory : public Part {
 public:
  using Part::Part;

  /// Numbers per row of each tensor of the state. All are zero at the start of an episode.
  virtual std::vector<std::size_t> state_sizes() const = 0;
  /// Output size for features of size `in`.
  virtual std::size_t output_size(std::size_t in) const = 0;

  /// Runs one step of rows. The result is valid as long as the state after it.
  virtual MatrixView step(const PartRows& rows, const StateRows& state) const = 0;

  /// The layers of recurrent cells, from the bottom.
  virtual std::vector<CellLayer> cells() const { return {}; }
};

}  // namespace surefoot
