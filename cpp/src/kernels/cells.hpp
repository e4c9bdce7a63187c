// Recurrent cells: compute the next state from the matrix products, row by row.
#pragma once

#include "lanes.hpp"
#include "math.hpp"
#include "surefoot/kernels.hpp"

namespace surefoot {
namespace {

/// h' = n + z (h - n) with n = tanh(x_n + r h_n).
void gru(const CellBlock& block) {
  const std::size_t size = block.hidden;
  over_elements(block.rows, size, [&](std::size_t row, std::size_t i, auto lanes) SUREFOOT_MEMBER {
    const float* const x = block.from_input.data + row * block.from_input.stride + i;
    const float* const h = block.from_state.data + row * block.from_state.stride + i;
    const Vector before = lanes.read(block.state.data + row * block.state.stride + i);
    const Vector reset = sigmoid(lanes.read(x) + lanes.read(h));
    const Vector update = sigmoid(lanes.read(x + size) + lanes.read(h + size));
    const Vector fresh = tanh(fma(reset, lanes.read(h + 2 * size), lanes.read(x + 2 * size)));
    lanes.write(block.output + row * block.stride + i, fma(update, before - fresh, fresh));
  });
}

/// c' = f c + i g, h' = o tanh(c').
void lstm(const CellBlock& block) {
  const std::size_t size = block.hidden;
  over_elements(block.rows, size, [&](std::size_t row, std::size_t i, auto lanes) SUREFOOT_MEMBER {
    const float* const x = block.from_input.data + row * block.from_input.stride + i;
    const float* const h = block.from_state.data + row * block.from_state.stride + i;
    const auto gate = [&](std::size_t index)
                          SUREFOOT_MEMBER { return lanes.read(x + index * size) + lanes.read(h + index * size); };
    const Vector added = sigmoid(gate(0)) * tanh(gate(2));
    const Vector before = lanes.read(block.state.data + row * block.state.stride + i);
    const Vector kept = fma(sigmoid(gate(1)), before, added);
    lanes.write(block.cell + row * block.stride + i, kept);
    lanes.write(block.output + row * block.stride + i, sigmoid(gate(3)) * tanh(kept));
  });
}

}  // namespace
}  // namespace surefoot
