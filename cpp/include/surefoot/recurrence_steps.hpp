// Arguments of the kernels that run and differentiate one step of a GRU or LSTM layer. Rows are contiguous unless there
// is a stride.
#pragma once

#include <cstddef>

namespace surefoot {

/// i, f, o = sigmoid, g = tanh of gates_x + gates_h;  c = f * c_before + i * g;  h = o * tanh(c).
struct LstmStep {
  std::size_t rows;
  std::size_t hidden;
  const float* gates_x;        // [rows, 4 * hidden]: i, f, g, o, row stride:
  std::size_t gates_x_stride;  // at least 4 * hidden
  const float* gates_h;        // the same for the previous state, row stride:
  std::size_t gates_h_stride;  // at least 4 * hidden
  const float* c_before;       // [rows, hidden]
  float* gates;                // [rows, 4 * hidden], activated
  float* c;
  float* h;
};

/// The gradient of one step, from the intermediate results that LstmStep stored.
struct LstmGradient {
  std::size_t rows;
  std::size_t hidden;
  const float* gates;
  const float* c_before;
  const float* c;
  const float* grad_h;         // dL/dh from the uses of this step's output, row stride:
  std::size_t grad_h_stride;   // at least `hidden`
  const float* later_h;        // dL/dh from the next step, row stride:
  std::size_t later_h_stride;  // at least `hidden`
  float* grad_c;               // [rows, hidden], dL/dc from the next step; overwritten with that for the previous step
  float* grad_gates;           // [rows, 4 * hidden], before activation, row stride:
  std::size_t grad_stride;     // at least 4 * hidden
};

/// r, z = sigmoid of gates_x + gates_h;  n = tanh(x_n + r * h_n);  h = (1 - z) * n + z * h_before.
struct GruStep {
  std::size_t rows;
  std::size_t hidden;
  const float* gates_x;        // [rows, 3 * hidden]: r, z, n, row stride:
  std::size_t gates_x_stride;  // at least 3 * hidden
  const float* gates_h;        // the same for the previous state, row stride:
  std::size_t gates_h_stride;  // at least 3 * hidden
  const float* h_before;       // [rows, hidden]
  float* gates;                // [rows, 4 * hidden]: activated r, z, n, and h_n, the factor of r
  float* h;
};

struct GruGradient {
  std::size_t rows;
  std::size_t hidden;
  const float* gates;
  const float* h_before;
  const float* grad_h;         // dL/dh from the uses of this step's output, row stride:
  std::size_t grad_h_stride;   // at least `hidden`
  const float* later_h;        // dL/dh through the gates of the next step, row stride:
  std::size_t later_h_stride;  // at least `hidden`
  float* kept_h;  // [rows, hidden], dL/dh through z * h_before of the next step; overwritten with that of this step
  float* grad_gates_x;      // [rows, 3 * hidden], before activation
  float* grad_gates_h;      // the same, but for n the gradient of h_n; row stride of both:
  std::size_t grad_stride;  // at least 3 * hidden
};

}  // namespace surefoot
