// Arguments of the kernels that evaluate and differentiate heads. Actions, choices, masks and per-row gradients are
// contiguous.
//
// Buffers marked "kept" pass intermediate results from the evaluation to the gradient. They are in the kernels' own
// order, with the rows rounded up to whole vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "surefoot/matrix_view.hpp"

namespace surefoot {

/// Nodes and weights of a quadrature rule for expectations under a standard normal.
struct Quadrature {
  std::size_t count;
  const float* nodes;
  const float* weights;
};

/// Log-probabilities and entropies of independent normals. `std` and `log_std` have stride 0 if they are the same for
/// all rows.
struct GaussianEvaluation {
  std::size_t rows;
  std::size_t size;
  MatrixView mean;
  MatrixView std;
  MatrixView log_std;
  const float* action;       // [rows, size]
  const Quadrature* squash;  // nodes for the entropy of tanh(action), whose density is used; null: no tanh
  float* distance;           // kept [size per row]: distance from the mean in standard deviations
  float* mean_slope;         // kept [size per row] if squashed: derivative of the entropy's quadrature term by the mean
  float* std_slope;          // the same by the standard deviation
  float* log_prob;           // [rows]
  float* entropy;            // [rows]
};

/// The gradient of the last evaluation; std = floor + grown, where grown = exp(raw).
struct GaussianGradient {
  std::size_t rows;
  std::size_t size;
  MatrixView std;
  MatrixView grown;  // with the stride of `std`
  const float* distance;
  const float* mean_slope;  // null: not squashed
  const float* std_slope;
  const float* by_log_prob;  // [rows]
  const float* by_entropy;   // [rows]
  float* by_mean;            // row stride:
  std::size_t by_mean_stride;
  float* by_raw;  // null: not computed
  std::size_t by_raw_stride;
};

/// Log-probabilities and entropies of discrete choices. `sizes` is the number of choices of each of `count` elements; a
/// binary choice has one logit, that of yes.
struct ChoiceEvaluation {
  std::size_t rows;
  std::size_t count;
  const std::int64_t* sizes;
  std::size_t num_logits;  // per row
  MatrixView logits;
  const bool* mask;            // [rows, num_logits] or null
  const std::int64_t* choice;  // [rows, count]
  float* log_probs;            // kept [num_logits per row], except for binary choices
  float* probs;                // the same
  float* entropies;            // kept [count per row], except for binary choices
  float* log_prob;             // [rows]
  float* entropy;              // [rows]
};

/// The gradient of the last evaluation; exactly 0 for the logits of masked choices.
struct ChoiceGradient {
  const ChoiceEvaluation& of;
  const float* by_log_prob;  // [rows]
  const float* by_entropy;   // [rows]
  float* by_logits;          // with the stride of the logits
};

}  // namespace surefoot
