// A memory: features of a step and a state, to features that know the past and the next state.
#pragma once

#include <array>
#include <vector>

#include "surefoot/parts/part.hpp"

namespace surefoot {

/// Parts that a memory's state may have.
inline constexpr std::size_t kMostStateParts = 4;

/// The state of a block of rows: part k is [rows, size of part k], and may be changed in place.
struct StateRows {
  std::array<const float*, kMostStateParts> before;
  std::array<float*, kMostStateParts> after;
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
};

}  // namespace surefoot
