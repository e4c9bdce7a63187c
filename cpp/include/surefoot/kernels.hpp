// The vectorized loops that policies are made of, compiled once for each instruction set and chosen at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "surefoot/activation.hpp"
#include "surefoot/head_steps.hpp"
#include "surefoot/matrix_view.hpp"
#include "surefoot/recurrence_steps.hpp"

namespace surefoot {

/// A linear layer as the kernels read it: panels of `panel` columns, each [in][panel], padded with zeros.
/// Layers of few outputs hold their rows instead, each padded with zeros: [out][in rounded up to `kNarrowLanes`].
struct PackedLayer {
  std::size_t in;
  std::size_t out;
  const float* weight;
  const float* bias;  // padded like the columns
};

/// What a Gaussian head samples from and where to; `std` has stride 0 if it is the same for all rows.
struct GaussianBlock {
  std::size_t rows;
  std::size_t size;
  MatrixView mean;
  MatrixView std;
  MatrixView noise;
  bool squash;  // log-prob of tanh of the sample
  float* action;
  float* log_prob;
};

/// What heads of choices sample from and where to. `sizes` counts the choices of each of `count` elements.
struct ChoiceBlock {
  std::size_t rows;
  std::size_t count;
  const std::int64_t* sizes;
  MatrixView logits;
  const bool* mask;  // [rows, sum of sizes] or null
  MatrixView noise;
  float* scratch;  // `lanes` floats for each of the most choices an element has
  std::int64_t* choice;
  float* log_prob;
};

/// Rows of one recurrent layer, what its two products gave, and where its next state goes; gates side by side, each
/// `hidden` wide, in torch's order. The next state may be written where the old one is read.
struct CellBlock {
  std::size_t rows;
  std::size_t hidden;
  MatrixView from_input;  // GRU: r, z, n; LSTM: i, f, g, o
  MatrixView from_state;
  MatrixView state;    // before: h of a GRU, c of an LSTM
  float* output;       // h
  float* cell;         // c of an LSTM
  std::size_t stride;  // of `output` and `cell`
};

struct Normalization {
  const float* shift;
  const float* scale;
  float clip;  // infinity: none
};

struct UniformBlock {
  std::uint64_t seed;
  std::uint64_t step;
  std::uint64_t first_row;
  std::uint32_t stream;
  std::size_t rows;
  std::size_t count;
  const std::uint64_t* numbers = nullptr;  // of the rows, [rows]; null: neighbors from first_row on
};

/// The clipped surrogate of rows: losses and measures of each, and the gradient of its log-probability, which is added.
struct SurrogateBlock {
  std::size_t rows;
  const float* log_ratio;
  const float* advantage;
  float clip, low, high;  // low and high: 1 - clip and 1 + clip
  float weight;           // of a row's gradient
  float* loss;
  float* kl;
  float* is_outside;
  float* gradient;
};

/// One step of Adam: mean and mean square of the gradient follow it, and the weight moves against their quotient.
struct AdamStep {
  float scale;        // of the gradient, which clips its norm
  float added_decay;  // weight decay of Adam: a part of the weight in its gradient
  float kept;         // weight decay of AdamW: the part of a weight that stays
  float new_mean, old_square, new_square;
  float rate;        // with the mean's bias corrected
  float root_scale;  // corrects the bias of the mean square's root
  float epsilon;
};

/// One step of scaling by variance: running mean and variance of every element of the gradient follow it.
struct VarianceStep {
  float share = 0, kept = 0;  // of the new gradient in its mean; of the old variance: 1 - share
  float strength = 0;         // 0: nothing is scaled
  float floor, epsilon;
};

/// Of a stretch: the sum of the scales, and how many are at the floor.
struct ScaledSums {
  double scale, at_floor;
};

/// Sums of weighted stretches of one array: out[r][i] = start[r] + sum over j of weight[r][j] * in[at[j] + i]. A
/// convolution is one, and so is the gradient of its input.
struct ShiftedSums {
  std::size_t rows, terms;
  std::size_t count;  // of i; whole panels are read and written
  const float* weight;
  std::size_t weight_stride;       // from row to row
  const std::uint32_t* weight_at;  // [terms] of a row's weights
  const float* in;
  const std::uint32_t* at;  // [terms]
  const float* start;       // [rows]
};

/// Products of stretches of one array with the columns of a matrix: out[j][c] = sum over i of in[at[j] + i] * by[i][c].
struct ShiftedProducts {
  std::size_t terms, count;
  std::size_t columns;  // whole vectors are read and written
  const float* in;
  const std::uint32_t* at;  // [terms]
  MatrixView by;
};

/// One instruction set's functions. What they give for a row depends on nothing but that row. AVX2 and AVX-512 give the
/// same bits; the generic functions do not fuse multiplications with additions and round differently.
/// Quantiles of one sample, and Huber's loss of each over kappa, weighted by tau or 1 - tau.
struct QuantileRow {
  std::size_t count;
  const float* tau;
  const float* quantiles;
  float target, kappa;
  float share;   // of each quantile in the slope
  float* loss;   // [count]
  float* slope;  // [count], by the quantile
};

struct Kernels {
  const char* name;
  std::size_t lanes;  // floats in a vector
  std::size_t panel;  // columns that a packed layer's panels have

  /// Out = in * weight + bias; writes whole vectors, so `out_stride` is at least the columns rounded up to `panel`.
  /// Without a bias the product is added to what is in `out`.
  void (*linear)(const PackedLayer& layer, std::size_t rows, MatrixView in, float* out, std::size_t out_stride);
  /// The same of the transpose of `in`, whose column r is row r of the result.
  void (*linear_transposed)(const PackedLayer& layer, std::size_t rows, MatrixView in, float* out,
                            std::size_t out_stride);
  /// The same for layers of few outputs, packed by rows; writes nothing but the outputs.
  void (*linear_narrow)(const PackedLayer& layer, std::size_t rows, MatrixView in, float* out, std::size_t out_stride);
  void (*shifted_sums)(const ShiftedSums& sums, float* out, std::size_t out_stride);
  void (*shifted_products)(const ShiftedProducts& products, float* out, std::size_t out_stride);
  void (*activate)(Activation activation, float* values, std::size_t count);
  /// dL/dx of y = activation(x) from dL/dy; `shown` is y where `slope_shows`, and x for the others.
  void (*differentiate)(Activation activation, const float* shown, const float* gradient, float* out,
                        std::size_t count);
  void (*normalize)(const Normalization& by, std::size_t rows, std::size_t size, const float* in, float* out);
  void (*uniforms)(const UniformBlock& block, float* out);

  void (*gru)(const CellBlock& block);
  void (*lstm)(const CellBlock& block);

  void (*gaussian)(const GaussianBlock& block);
  void (*categorical)(const ChoiceBlock& block);
  void (*bernoulli)(const ChoiceBlock& block);

  void (*evaluate_gaussian)(const GaussianEvaluation& step);
  void (*gaussian_gradient)(const GaussianGradient& step);
  void (*evaluate_categorical)(const ChoiceEvaluation& step);
  void (*categorical_gradient)(const ChoiceGradient& step);
  void (*evaluate_bernoulli)(const ChoiceEvaluation& step);
  void (*bernoulli_gradient)(const ChoiceGradient& step);

  void (*lstm_step)(const LstmStep& step);
  void (*lstm_gradient)(const LstmGradient& step);
  void (*gru_step)(const GruStep& step);
  void (*gru_gradient)(const GruGradient& step);

  /// Sums over rows, in float64.
  void (*column_sums)(std::size_t rows, std::size_t columns, MatrixView in, double* sums);
  double (*sum_squares)(std::size_t rows, std::size_t columns, MatrixView in);
  /// Some columns of rows as a panel: [rows][panel], padded with zeros.
  void (*copy_panel)(std::size_t rows, std::size_t columns, MatrixView in, float* out);
  /// Some rows of weights as a panel: [columns][panel]; what lies beyond the rows stays as it is.
  void (*transpose_panel)(std::size_t rows, std::size_t columns, MatrixView in, float* out);
  void (*surrogate)(const SurrogateBlock& block);
  double (*quantile_huber)(const QuantileRow& row);
  void (*adam)(const AdamStep& by, std::size_t count, const float* gradient, float* value, float* mean, float* square);
  ScaledSums (*scale_by_variance)(const VarianceStep& by, std::size_t count, float* gradient, float* mean,
                                  float* variance);

  void (*tanh)(const float* in, float* out, std::size_t count);
  void (*exp)(const float* in, float* out, std::size_t count);
  void (*expm1)(const float* in, float* out, std::size_t count);
  void (*log)(const float* in, float* out, std::size_t count);
  void (*softplus)(const float* in, float* out, std::size_t count);
};

/// Outputs up to this many are computed as dot products along the inputs.
inline constexpr std::size_t kNarrowOutputs = 4;

/// Chains of such a dot product: input i belongs to chain i % kNarrowLanes.
inline constexpr std::size_t kNarrowLanes = 16;

/// Those that SUREFOOT_INSTRUCTIONS names, or the best that this machine can run. The variable is read once; a name
/// that this machine does not have is a std::invalid_argument.
const Kernels& kernels();

/// All that this machine can run, the plainest first.
const std::vector<const Kernels*>& available_kernels();

/// The kernels of that name, or null if there are none or this machine cannot run them.
const Kernels* find_kernels(std::string_view name);

}  // namespace surefoot
