// One step of a GRU or LSTM layer when it learns: what its kernels read and write. Rows are contiguous where there is
// no stride.
#pragma once

#include <cstddef>

namespace surefoot {

/// i, f, o = sigmoid, g = tanh of gates_x + gates_h;  c = f * c_before + i * g;  h = o * tanh(c).
struct LstmStep {
  std::size_t rows;
  std::size_t hidden;
  const float* gates_x;        // [rows, 4 * hidden]: i, f, g, o, row to row:
  std::size_t gates_x_stride;  // at least 4 * hidden
  const float* gates_h;        // the same of the state before, row to row:
  std::size_t gates_h_stride;  // at least 4 * hidden
  const float* c_before;       // [rows, hidden]
  float* gates;                // [rows, 4 * hidden], activated
  float* c;
  float* h;
};

/// The gradient of one step, by what it left behind.
struct LstmGradient {
  std::size_t rows;
  std::size_t hidden;
  const float* gates;
  const float* c_before;
  const float* c;
  const float* grad_h;         // dL/dh of those who use this step's h, row to row:
  std::size_t grad_h_stride;   // at least `hidden`
  const float* later_h;        // dL/dh of the step after, row to row:
  std::size_t later_h_stride;  // at least `hidden`
  float* grad_c;               // [rows, hidden], dL/dc of the step after; becomes that of the step before
  float* grad_gates;           // [rows, 4 * hidden], before activation, row to row:
  std::size_t grad_stride;     // at least 4 * hidden
};

/// r, z = sigmoid of gates_x + gates_h;  n = tanh(x_n + r * h_n);  h = (1 - z) * n + z * h_before.
struct GruStep {
  std::size_t rows;
  std::size_t hidden;
  const float* gates_x;        // [rows, 3 * hidden]: r, z, n, row to row:
  std::size_t gates_x_stride;  // at least 3 * hidden
  const float* gates_h;        // the same of the state before, row to row:
  std::size_t gates_h_stride;  // at least 3 * hidden
  const float* h_before;       // [rows, hidden]
  float* gates;                // [rows, 4 * hidden]: r, z, n activated, and h_n, which r was multiplied with
  float* h;
};

struct GruGradient {
  std::size_t rows;
  std::size_t hidden;
  const float* gates;
  const float* h_before;
  const float* grad_h;         // dL/dh of those who use this step's h, row to row:
  std::size_t grad_h_stride;   // at least `hidden`
  const float* later_h;        // dL/dh through the gates of the step after, row to row:
  std::size_t later_h_stride;  // at least `hidden`
  float* kept_h;               // [rows, hidden], dL/dh through z * h_before of the step after; becomes this step's
  float* grad_gates_x;         // [rows, 3 * hidden], before activation
  float* grad_gates_h;         // the same but for n, whose part of the state is behind r; both row to row:
  std::size_t grad_stride;     // at least 3 * hidden
};

}  // namespace surefoot
