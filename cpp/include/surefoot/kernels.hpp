// The vectorized loops that policies are made of, compiled once for each instruction set and chosen at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "surefoot/activation.hpp"
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

/// A block of rows: row r begins at data + r * stride.
struct MatrixView {
  const float* data;
  std::size_t stride;
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
};

/// One instruction set's functions. What they give for a row depends on nothing but that row. AVX2 and AVX-512 give the
/// same bits; the generic functions do not fuse multiplications with additions and round differently.
struct Kernels {
  const char* name;
  std::size_t lanes;  // floats in a vector
  std::size_t panel;  // columns that a packed layer's panels have

  /// Out = in * weight + bias; writes whole panels, so `out_stride` is at least the columns rounded up to `panel`.
  void (*linear)(const PackedLayer& layer, std::size_t rows, MatrixView in, float* out, std::size_t out_stride);
  /// The same of the transpose of `in`, whose column r is row r of the result.
  void (*linear_transposed)(const PackedLayer& layer, std::size_t rows, MatrixView in, float* out,
                            std::size_t out_stride);
  /// The same for layers of few outputs, packed by rows; writes nothing but the outputs.
  void (*linear_narrow)(const PackedLayer& layer, std::size_t rows, MatrixView in, float* out, std::size_t out_stride);
  void (*activate)(Activation activation, float* values, std::size_t count);
  /// dL/dx of y = activation(x) from dL/dy; only for activations whose slope can be told from y.
  void (*differentiate)(Activation activation, const float* y, const float* gradient, float* out, std::size_t count);
  void (*normalize)(const Normalization& by, std::size_t rows, std::size_t size, const float* in, float* out);
  void (*uniforms)(const UniformBlock& block, float* out);

  void (*gru)(const CellBlock& block);
  void (*lstm)(const CellBlock& block);

  void (*gaussian)(const GaussianBlock& block);
  void (*categorical)(const ChoiceBlock& block);
  void (*bernoulli)(const ChoiceBlock& block);

  void (*lstm_step)(const LstmStep& step);
  void (*lstm_gradient)(const LstmGradient& step);
  void (*gru_step)(const GruStep& step);
  void (*gru_gradient)(const GruGradient& step);

  void (*tanh)(const float* in, float* out, std::size_t count);
  void (*exp)(const float* in, float* out, std::size_t count);
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
