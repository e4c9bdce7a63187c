// Gates of GRU and LSTM layers during learning: values and gradients of one step.
#pragma once

#include "lanes.hpp"
#include "math.hpp"
#include "surefoot/recurrence_steps.hpp"

namespace surefoot {
namespace {

void lstm_step(const LstmStep& step) {
  const std::size_t size = step.hidden;
  over_elements(step.rows, size, [&](std::size_t row, std::size_t column, auto lanes) SUREFOOT_MEMBER {
    const float* const x = step.gates_x + row * step.gates_x_stride + column;
    const float* const state = step.gates_h + row * step.gates_h_stride + column;
    float* const gates = step.gates + row * 4 * size + column;
    const std::size_t at = row * size + column;
    const Vector i = sigmoid(lanes.read(x) + lanes.read(state));
    const Vector f = sigmoid(lanes.read(x + size) + lanes.read(state + size));
    const Vector g = tanh(lanes.read(x + 2 * size) + lanes.read(state + 2 * size));
    const Vector o = sigmoid(lanes.read(x + 3 * size) + lanes.read(state + 3 * size));
    const Vector c = fma(f, lanes.read(step.c_before + at), i * g);
    lanes.write(gates, i);
    lanes.write(gates + size, f);
    lanes.write(gates + 2 * size, g);
    lanes.write(gates + 3 * size, o);
    lanes.write(step.c + at, c);
    lanes.write(step.h + at, o * tanh(c));
  });
}

void lstm_gradient(const LstmGradient& step) {
  const std::size_t size = step.hidden;
  over_elements(step.rows, size, [&](std::size_t row, std::size_t column, auto lanes) SUREFOOT_MEMBER {
    const float* const gates = step.gates + row * 4 * size + column;
    float* const grad_gates = step.grad_gates + row * step.grad_stride + column;
    const std::size_t at = row * size + column;
    const Vector i = lanes.read(gates);
    const Vector f = lanes.read(gates + size);
    const Vector g = lanes.read(gates + 2 * size);
    const Vector o = lanes.read(gates + 3 * size);
    const Vector tanh_c = tanh(lanes.read(step.c + at));
    const Vector grad_h = lanes.read(step.grad_h + row * step.grad_h_stride + column) +
                          lanes.read(step.later_h + row * step.later_h_stride + column);
    const Vector grad_c = lanes.read(step.grad_c + at) + through_tanh(grad_h * o, tanh_c);
    lanes.write(grad_gates, through_sigmoid(grad_c * g, i));
    lanes.write(grad_gates + size, through_sigmoid(grad_c * lanes.read(step.c_before + at), f));
    lanes.write(grad_gates + 2 * size, through_tanh(grad_c * i, g));
    lanes.write(grad_gates + 3 * size, through_sigmoid(grad_h * tanh_c, o));
    lanes.write(step.grad_c + at, grad_c * f);
  });
}

void gru_step(const GruStep& step) {
  const std::size_t size = step.hidden;
  over_elements(step.rows, size, [&](std::size_t row, std::size_t column, auto lanes) SUREFOOT_MEMBER {
    const float* const x = step.gates_x + row * step.gates_x_stride + column;
    const float* const state = step.gates_h + row * step.gates_h_stride + column;
    float* const gates = step.gates + row * 4 * size + column;
    const std::size_t at = row * size + column;
    const Vector r = sigmoid(lanes.read(x) + lanes.read(state));
    const Vector z = sigmoid(lanes.read(x + size) + lanes.read(state + size));
    const Vector h_n = lanes.read(state + 2 * size);
    const Vector n = tanh(fma(r, h_n, lanes.read(x + 2 * size)));
    lanes.write(gates, r);
    lanes.write(gates + size, z);
    lanes.write(gates + 2 * size, n);
    lanes.write(gates + 3 * size, h_n);
    lanes.write(step.h + at, fma(z, lanes.read(step.h_before + at) - n, n));
  });
}

void gru_gradient(const GruGradient& step) {
  const std::size_t size = step.hidden;
  over_elements(step.rows, size, [&](std::size_t row, std::size_t column, auto lanes) SUREFOOT_MEMBER {
    const float* const gates = step.gates + row * 4 * size + column;
    float* const grad_x = step.grad_gates_x + row * step.grad_stride + column;
    float* const grad_state = step.grad_gates_h + row * step.grad_stride + column;
    const std::size_t at = row * size + column;
    const Vector r = lanes.read(gates);
    const Vector z = lanes.read(gates + size);
    const Vector n = lanes.read(gates + 2 * size);
    const Vector later = lanes.read(step.later_h + row * step.later_h_stride + column);
    const Vector grad_h =
        lanes.read(step.grad_h + row * step.grad_h_stride + column) + (later + lanes.read(step.kept_h + at));
    const Vector grad_z = through_sigmoid(grad_h * (lanes.read(step.h_before + at) - n), z);
    const Vector grad_n = through_tanh(grad_h * (1.0f - z), n);
    const Vector grad_r = through_sigmoid(grad_n * lanes.read(gates + 3 * size), r);
    lanes.write(grad_x, grad_r);
    lanes.write(grad_x + size, grad_z);
    lanes.write(grad_x + 2 * size, grad_n);
    lanes.write(grad_state, grad_r);
    lanes.write(grad_state + size, grad_z);
    lanes.write(grad_state + 2 * size, grad_n * r);
    lanes.write(step.kept_h + at, grad_h * z);
  });
}

}  // namespace
}  // namespace surefoot
