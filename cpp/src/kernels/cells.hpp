// Recurrent cells: from what the matrix products gave to the next state, one row after the other.
#pragma once

#include "math.hpp"
#include "surefoot/kernels.hpp"

namespace surefoot {
namespace {

/// A whole vector of a row.
struct WholeVector {
  Vector take(const float* from) const { return load(from); }
  void put(float* to, Vector values) const { store(to, values); }
};

/// What is left at the end of a row.
struct PartVector {
  std::size_t count;

  Vector take(const float* from) const { return gather(from, 1, count, 0.0f); }
  void put(float* to, Vector values) const { scatter(to, 1, count, values); }
};

template <typename Function>
SUREFOOT_INLINE void for_columns(std::size_t columns, Function function) {
  std::size_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) function(i, WholeVector{});
  if (i < columns) function(i, PartVector{columns - i});
}

/// h' = n + z (h - n) with n = tanh(x_n + r h_n).
void gru(const CellBlock& block) {
  const std::size_t size = block.hidden;
  for (std::size_t row = 0; row < block.rows; ++row) {
    const float* const x = block.from_input.data + row * block.from_input.stride;
    const float* const h = block.from_state.data + row * block.from_state.stride;
    const float* const before = block.state.data + row * block.state.stride;
    float* const after = block.output + row * block.stride;
    for_columns(size, [&](std::size_t i, auto lanes) {
      const Vector reset = sigmoid(lanes.take(x + i) + lanes.take(h + i));
      const Vector update = sigmoid(lanes.take(x + size + i) + lanes.take(h + size + i));
      const Vector fresh = tanh(fma(reset, lanes.take(h + 2 * size + i), lanes.take(x + 2 * size + i)));
      lanes.put(after + i, fma(update, lanes.take(before + i) - fresh, fresh));
    });
  }
}

/// c' = f c + i g, h' = o tanh(c').
void lstm(const CellBlock& block) {
  const std::size_t size = block.hidden;
  for (std::size_t row = 0; row < block.rows; ++row) {
    const float* const x = block.from_input.data + row * block.from_input.stride;
    const float* const h = block.from_state.data + row * block.from_state.stride;
    const float* const before = block.state.data + row * block.state.stride;
    float* const output = block.output + row * block.stride;
    float* const cell = block.cell + row * block.stride;
    for_columns(size, [&](std::size_t i, auto lanes) {
      const auto gate = [&](std::size_t index) {
        return lanes.take(x + index * size + i) + lanes.take(h + index * size + i);
      };
      const Vector added = sigmoid(gate(0)) * tanh(gate(2));
      const Vector kept = fma(sigmoid(gate(1)), lanes.take(before + i), added);
      lanes.put(cell + i, kept);
      lanes.put(output + i, sigmoid(gate(3)) * tanh(kept));
    });
  }
}

}  // namespace
}  // namespace surefoot
