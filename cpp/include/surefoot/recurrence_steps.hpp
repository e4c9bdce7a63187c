// Arguments of the kernels that run and differentiate one step of GRU or LSTM cells. Gates are side by side in torch's
// order, each `hidden` wide. `carried` is the state that a step also uses besides its gates: h of a GRU, c of an LSTM.
#pragma once

#include <cstddef>

#include "surefoot/matrix_view.hpp"

namespace surefoot {

/// GRU: r, z = sigmoid of gates_x + gates_h;  n = tanh(x_n + r * h_n);  h = (1 - z) * n + z * carried.
/// LSTM: i, f, o = sigmoid, g = tanh of gates_x + gates_h;  c = f * carried + i * g;  h = o * tanh(c).
struct CellStep {
  std::size_t rows, hidden;
  MatrixView gates_x;  // GRU: r, z, n; LSTM: i, f, g, o
  MatrixView gates_h;  // the same for the previous state
  MatrixView carried;  // the results may overwrite it
  float* gates;        // [rows, 4 * hidden] for the gradient: activated, and h_n of a GRU; null: not kept
  float* h;
  float* c;            // of an LSTM
  std::size_t stride;  // of h and c
};

/// The gradient of one step, from the intermediate results that CellStep stored. Rows are contiguous unless there is a
/// stride.
struct CellGradient {
  std::size_t rows, hidden;
  const float* gates;
  const float* carried;
  const float* c;           // of an LSTM
  MatrixView grad_h;        // dL/dh from the uses of this step's output
  MatrixView later_h;       // dL/dh through the gates of the next step
  float* grad_carried;      // [rows, hidden], dL/d(carried) from the next step; overwritten with that of this step
  float* grad_gates_x;      // [rows, gates * hidden], before activation
  float* grad_gates_h;      // of a GRU: the same, but for n the gradient of h_n; of an LSTM they are equal
  std::size_t grad_stride;  // of both
};

}  // namespace surefoot
