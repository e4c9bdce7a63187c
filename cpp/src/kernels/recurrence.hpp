// GRU and LSTM cells: one step from the matrix products of a layer, and its gradient.
#pragma once

#include "lanes.hpp"
#include "math.hpp"
#include "surefoot/recurrence_steps.hpp"

namespace surefoot {
namespace {

SUREFOOT_INLINE const float* place(MatrixView view, std::size_t row, std::size_t column) {
  return view.data + row * view.stride + column;
}

/// Keeps the intermediate results of some cells, one per gate.
template <class Lanes>
SUREFOOT_INLINE void keep(const CellStep& step, std::size_t row, std::size_t column, Lanes lanes,
                          const Vector (&gates)[4]) {
  if (step.gates == nullptr) return;
  float* const to = step.gates + row * 4 * step.hidden + column;
#pragma GCC unroll 4
  for (std::size_t gate = 0; gate < 4; ++gate) lanes.write(to + gate * step.hidden, gates[gate]);
}

void lstm(const CellStep& step) {
  const std::size_t size = step.hidden;
  over_elements(step.rows, size, [&](std::size_t row, std::size_t column, auto lanes) SUREFOOT_MEMBER {
    const float* const x = place(step.gates_x, row, column);
    const float* const state = place(step.gates_h, row, column);
    const Vector i = sigmoid(lanes.read(x) + lanes.read(state));
    const Vector f = sigmoid(lanes.read(x + size) + lanes.read(state + size));
    const Vector g = tanh(lanes.read(x + 2 * size) + lanes.read(state + 2 * size));
    const Vector o = sigmoid(lanes.read(x + 3 * size) + lanes.read(state + 3 * size));
    const Vector c = fma(f, lanes.read(place(step.carried, row, column)), i * g);
    keep(step, row, column, lanes, {i, f, g, o});
    lanes.write(step.c + row * step.stride + column, c);
    lanes.write(step.h + row * step.stride + column, o * tanh(c));
  });
}

void lstm_gradient(const CellGradient& step) {
  const std::size_t size = step.hidden;
  over_elements(step.rows, size, [&](std::size_t row, std::size_t column, auto lanes) SUREFOOT_MEMBER {
    const float* const gates = step.gates + row * 4 * size + column;
    float* const grad_gates = step.grad_gates_x + row * step.grad_stride + column;
    const std::size_t at = row * size + column;
    const Vector i = lanes.read(gates);
    const Vector f = lanes.read(gates + size);
    const Vector g = lanes.read(gates + 2 * size);
    const Vector o = lanes.read(gates + 3 * size);
    const Vector tanh_c = tanh(lanes.read(step.c + at));
    const Vector grad_h = lanes.read(place(step.grad_h, row, column)) + lanes.read(place(step.later_h, row, column));
    const Vector grad_c = lanes.read(step.grad_carried + at) + through_tanh(grad_h * o, tanh_c);
    lanes.write(grad_gates, through_sigmoid(grad_c * g, i));
    lanes.write(grad_gates + size, through_sigmoid(grad_c * lanes.read(step.carried + at), f));
    lanes.write(grad_gates + 2 * size, through_tanh(grad_c * i, g));
    lanes.write(grad_gates + 3 * size, through_sigmoid(grad_h * tanh_c, o));
    lanes.write(step.grad_carried + at, grad_c * f);
  });
}

void gru(const CellStep& step) {
  const std::size_t size = step.hidden;
  over_elements(step.rows, size, [&](std::size_t row, std::size_t column, auto lanes) SUREFOOT_MEMBER {
    const float* const x = place(step.gates_x, row, column);
    const float* const state = place(step.gates_h, row, column);
    const Vector r = sigmoid(lanes.read(x) + lanes.read(state));
    const Vector z = sigmoid(lanes.read(x + size) + lanes.read(state + size));
    const Vector h_n = lanes.read(state + 2 * size);
    const Vector n = tanh(fma(r, h_n, lanes.read(x + 2 * size)));
    const Vector h = fma(z, lanes.read(place(step.carried, row, column)) - n, n);
    keep(step, row, column, lanes, {r, z, n, h_n});
    lanes.write(step.h + row * step.stride + column, h);
  });
}

void gru_gradient(const CellGradient& step) {
  const std::size_t size = step.hidden;
  over_elements(step.rows, size, [&](std::size_t row, std::size_t column, auto lanes) SUREFOOT_MEMBER {
    const float* const gates = step.gates + row * 4 * size + column;
    float* const grad_x = step.grad_gates_x + row * step.grad_stride + column;
    float* const grad_state = step.grad_gates_h + row * step.grad_stride + column;
    const std::size_t at = row * size + column;
    const Vector r = lanes.read(gates);
    const Vector z = lanes.read(gates + size);
    const Vector n = lanes.read(gates + 2 * size);
    const Vector later = lanes.read(place(step.later_h, row, column));
    const Vector grad_h = lanes.read(place(step.grad_h, row, column)) + (later + lanes.read(step.grad_carried + at));
    const Vector grad_z = through_sigmoid(grad_h * (lanes.read(step.carried + at) - n), z);
    const Vector grad_n = through_tanh(grad_h * (1.0f - z), n);
    const Vector grad_r = through_sigmoid(grad_n * lanes.read(gates + 3 * size), r);
    lanes.write(grad_x, grad_r);
    lanes.write(grad_x + size, grad_z);
    lanes.write(grad_x + 2 * size, grad_n);
    lanes.write(grad_state, grad_r);
    lanes.write(grad_state + size, grad_z);
    lanes.write(grad_state + 2 * size, grad_n * r);
    lanes.write(step.grad_carried + at, grad_h * z);
  });
}

}  // namespace
}  // namespace surefoot
