// The vectorized loops of policies and learner, compiled once for each instruction set and selected at run time.
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

/// A linear layer in the format of the kernels: panels of `panel` columns, each [in][panel], padded with zeros. Layers
/// with few outputs store their rows instead, each padded with zeros: [out][in rounded up to `kNarrowLanes`].
struct PackedLayer {
  std::size_t in;
  std::size_t out;
  const float* weight;
  const float* bias;  // padded like the columns
};

/// Arguments of sampling from a Gaussian head; `std` has stride 0 if it is the same for all rows.
struct GaussianBlock {
  std::size_t rows;
  std::size_t size;
  MatrixView mean;
  MatrixView std;
  MatrixView noise;
  bool squash;  // compute the log-prob of tanh(sample)
  float* action;
  float* log_prob;
};

/// Arguments of sampling from a discrete head. `sizes` is the number of choices of each of `count` elements.
struct ChoiceBlock {
  std::size_t rows;
  std::size_t count;
  const std::int64_t* sizes;
  MatrixView logits;
  const bool* mask;  // [rows, sum of sizes] or null
  MatrixView noise;
  float* scratch;  // `lanes` floats per choice of the element with the most choices
  std::int64_t* choice;
  float* log_prob;
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
  const std::uint64_t* numbers = nullptr;  // [rows] numbers of the rows; null: consecutive from first_row
};

/// The clipped surrogate: loss and measures of each row; the gradient by its log-probability is added to `gradient`.
struct SurrogateBlock {
  std::size_t rows;
  const float* log_ratio;
  const float* advantage;
  float clip, low, high;  // low and high: 1 - clip and 1 + clip
  float weight;           // factor of each row's gradient
  float* loss;
  float* kl;
  float* is_outside;
  float* gradient;
};

/// Coefficients of one Adam step: it updates the running mean and mean square of the gradient, then the weight.
struct AdamStep {
  float scale;        // factor of the gradient, clips its norm
  float added_decay;  // weight decay of Adam: multiple of the weight that is added to its gradient
  float kept;         // weight decay of AdamW: factor of the weight
  float new_mean, old_square, new_square;
  float rate;        // learning rate, corrected for the bias of the mean
  float root_scale;  // bias correction for the root of the mean square
  float epsilon;
};

/// Coefficients of one step of scaling by variance, which updates the running mean and variance of every gradient
/// element.
struct VarianceStep {
  float share = 0, kept = 0;  // weight of the new gradient in the running mean; factor of the old variance, 1 - share
  float strength = 0;         // 0: no scaling
  float floor, epsilon;
};

/// Sum of the scales over a range of elements, and the number of elements at the floor.
struct ScaledSums {
  double scale, at_floor;
};

/// Weighted sums of shifted ranges of one array: out[r][i] = start[r] + sum over j of weight[r][j] * in[at[j] + i]. A
/// convolution and the gradient of its input both have this form.
struct ShiftedSums {
  std::size_t rows, terms;
  std::size_t count;  // range of i; whole panels are read and written
  const float* weight;
  std::size_t weight_stride;       // row stride
  const std::uint32_t* weight_at;  // [terms] offsets in a row of `weight`
  const float* in;
  const std::uint32_t* at;  // [terms]
  const float* start;       // [rows]
};

/// Products of shifted ranges of one array with the columns of a matrix: out[j][c] = sum over i of in[at[j] + i] *
/// by[i][c].
struct ShiftedProducts {
  std::size_t terms, count;
  std::size_t columns;  // whole vectors are read and written
  const float* in;
  const std::uint32_t* at;  // [terms]
  MatrixView by;
};

/// Quantile Huber loss of one sample: Huber's loss of each quantile divided by kappa, weighted by tau or 1 - tau.
struct QuantileRow {
  std::size_t count;
  const float* tau;
  const float* quantiles;
  float target, kappa;
  float share;   // factor of each quantile in the slope
  float* loss;   // [count]
  float* slope;  // [count] derivative by each quantile
};

/// The functions of one instruction set. Their results for a row depend only on that row. AVX2 and AVX-512 give the
/// same bits; the generic functions round differently, because they do not fuse multiplications with additions.
struct Kernels {
  const char* name;
  std::size_t lanes;  // floats in a vector
  std::size_t panel;  // columns per panel of a packed layer

  /// Out = in * weight + bias; writes whole vectors, so `out_stride` is at least the columns rounded up to `panel`.
  /// Without a bias, the product is added to `out`.
  void (*linear)(const PackedLayer& layer, std::size_t rows, MatrixView in, float* out, std::size_t out_stride);
  /// Like `linear`, with the transpose of `in`: column r of `in` gives row r of the result.
  void (*linear_transposed)(const PackedLayer& layer, std::size_t rows, MatrixView in, float* out,
                            std::size_t out_stride);
  /// Like `linear`, for layers with few outputs, packed by rows; writes only the outputs.
  void (*linear_narrow)(const PackedLayer& layer, std::size_t rows, MatrixView in, float* out, std::size_t out_stride);
  void (*shifted_sums)(const ShiftedSums& sums, float* out, std::size_t out_stride);
  void (*shifted_products)(const ShiftedProducts& products, float* out, std::size_t out_stride);
  void (*activate)(Activation activation, float* values, std::size_t count);
  /// dL/dx of y = activation(x) from dL/dy; `shown` is y if `slope_shows(activation)`, else x.
  void (*differentiate)(Activation activation, const float* shown, const float* gradient, float* out,
                        std::size_t count);
  void (*normalize)(const Normalization& by, std::size_t rows, std::size_t size, const float* in, float* out);
  void (*uniforms)(const UniformBlock& block, float* out);

  void (*gru)(const CellStep& step);
  void (*gru_gradient)(const CellGradient& step);
  void (*lstm)(const CellStep& step);
  void (*lstm_gradient)(const CellGradient& step);

  void (*gaussian)(const GaussianBlock& block);
  void (*categorical)(const ChoiceBlock& block);
  void (*bernoulli)(const ChoiceBlock& block);

  void (*evaluate_gaussian)(const GaussianEvaluation& step);
  void (*gaussian_gradient)(const GaussianGradient& step);
  void (*evaluate_categorical)(const ChoiceEvaluation& step);
  void (*categorical_gradient)(const ChoiceGradient& step);
  void (*evaluate_bernoulli)(const ChoiceEvaluation& step);
  void (*bernoulli_gradient)(const ChoiceGradient& step);

  /// Sums over rows, in float64.
  void (*column_sums)(std::size_t rows, std::size_t columns, MatrixView in, double* sums);
  double (*sum_squares)(std::size_t rows, std::size_t columns, MatrixView in);
  /// Copies some columns of rows into a panel: [rows][panel], padded with zeros.
  void (*copy_panel)(std::size_t rows, std::size_t columns, MatrixView in, float* out);
  /// Transposes some rows of weights into a panel: [columns][panel]; columns of the panel beyond the rows keep their
  /// values.
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

/// Layers with at most this many outputs are computed as dot products along the inputs.
inline constexpr std::size_t kNarrowOutputs = 4;

/// Number of partial sums of such a dot product: input i is added to sum i % kNarrowLanes.
inline constexpr std::size_t kNarrowLanes = 16;

/// The kernels that SUREFOOT_INSTRUCTIONS names, or the best that this machine supports. The variable is read once;
/// throws std::invalid_argument if the machine does not support the named set.
const Kernels& kernels();

/// All kernels that this machine supports, from generic to best.
const std::vector<const Kernels*>& available_kernels();

/// The kernels of that name; null if the name is unknown or this machine does not support them.
const Kernels* find_kernels(std::string_view name);

}  // namespace surefoot
