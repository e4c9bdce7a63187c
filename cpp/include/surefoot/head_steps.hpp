// Heads when they learn: what their kernels read and write. Actions, choices, masks and gradients by row are
// contiguous.
//
// What is kept from the evaluation for the gradient is in the kernels' own order, for the rows rounded up to whole
// vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "surefoot/matrix_view.hpp"

namespace surefoot {

/// Nodes and weights of expectations under a standard normal.
struct Quadrature {
  std::size_t count;
  const float* nodes;
  const float* weights;
};

/// Log-probabilities and entropies of independent normals. `std` and its log have stride 0 if they are the same for all
/// rows.
struct GaussianEvaluation {
  std::size_t rows;
  std::size_t size;
  MatrixView mean;
  MatrixView std;
  MatrixView log_std;
  const float* action;       // [rows, size]
  const Quadrature* squash;  // the density is that of tanh of the action, with entropies by these nodes; or null
  float* distance;           // kept [size a row]: from the mean, in standard deviations
  float* mean_slope;         // kept [size a row] if squashed: how the nodes' part of the entropy changes with the mean
  float* std_slope;          // the same with the standard deviation
  float* log_prob;           // [rows]
  float* entropy;            // [rows]
};

/// The gradient of what was just evaluated; std = floor + grown, and grown = exp(raw).
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
  float* by_mean;            // row to row:
  std::size_t by_mean_stride;
  float* by_raw;  // null: not wanted
  std::size_t by_raw_stride;
};

/// Log-probabilities and entropies of choices. `sizes` counts the choices of each of `count` elements; a yes or no has
/// one logit, that of yes.
struct ChoiceEvaluation {
  std::size_t rows;
  std::size_t count;
  const std::int64_t* sizes;
  std::size_t num_logits;  // of a row
  MatrixView logits;
  const bool* mask;            // [rows, num_logits] or null
  const std::int64_t* choice;  // [rows, count]
  float* log_probs;            // kept [num_logits a row], but for yes or no
  float* probs;                // the same
  float* entropies;            // kept [count a row], but for yes or no
  float* log_prob;             // [rows]
  float* entropy;              // [rows]
};

/// The gradient of what was just evaluated; exactly 0 for the logits of choices that a mask forbids.
struct ChoiceGradient {
  const ChoiceEvaluation& of;
  const float* by_log_prob;  // [rows]
  const float* by_entropy;   // [rows]
  float* by_logits;          // with the stride of the logits
};

}  // namespace surefoot
