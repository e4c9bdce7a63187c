// Linear layers during learning: weights in the memory of PyTorch's module, with a copy that is packed for the kernels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "surefoot/layer.hpp"
#include "surefoot/learner.hpp"

namespace surefoot {

/// A matrix with a row per sample of a piece; padded to whole panels, as the kernels write them.
struct Matrix {
  std::size_t size = 0, stride = 0;
  AlignedFloats floats{};

  Matrix() = default;
  Matrix(std::size_t columns, std::size_t padded) : size(columns), stride(padded) {}

  void reserve(std::size_t rows) {
    if (floats.size() < rows * stride) floats.resize(rows * stride);
  }
  float* row(std::size_t index) { return floats.data() + index * stride; }
  const float* row(std::size_t index) const { return floats.data() + index * stride; }
  MatrixView view(std::size_t first = 0) const { return {row(first), stride}; }
};

struct Parameter;

/// Coefficients of an optimizer step for every tensor, which depend on the norm it is clipped by and on its number of
/// steps.
class AdamSteps {
 public:
  /// `scales` has one factor per clipped norm.
  AdamSteps(const OptimizerSettings& by, std::size_t steps, std::vector<double> scales);
  AdamStep of(const Parameter& parameter) const;

 private:
  const OptimizerSettings& by_;
  std::size_t steps_;
  std::vector<double> scales_;
  AdamStep usual_;  // for tensors that were never frozen, without the scale
};

/// A tensor of the policy during an update: its address, and its offset in the optimizer's flat memory.
struct Parameter {
  std::string name;
  std::size_t size;
  const float* value = nullptr;
  std::size_t offset = 0;
  bool learns = false;  // if false, it keeps its value
  std::size_t part = 0, clip = 0, missed = 0;

  void bind(const TensorReader& tensors, const FlatMemory& memory);
  /// Runs one optimizer step on some of its elements.
  void step(const Kernels& kernels, const AdamSteps& by, const FlatMemory& memory, std::size_t first,
            std::size_t count) const;
};

/// A layer between two matrices. Work on rows runs on the thread that has them; sums over rows and optimizer steps are
/// divided into tasks with separate outputs. So no result depends on the number of threads.
class Dense {
 public:
  Dense(const Kernels& kernels, LayerNames names, std::size_t in, std::size_t out);

  void bind(const TensorReader& tensors, const FlatMemory& memory);
  /// Requests gradients of the inputs.
  void pass_gradients() { passes_gradients_ = true; }
  void reserve(std::size_t rows);

  void forward(std::size_t first, std::size_t count, MatrixView in) {
    packed_.run(kernels_, count, in, out.row(first), out.stride);
  }
  /// Computes the gradient of the inputs from `grad`; adds to it if `adds`.
  void backward(std::size_t first, std::size_t count, Matrix& grad_in, bool adds) const {
    transposed_.run(kernels_, count, grad.view(first), grad_in.row(first), grad_in.stride, adds);
  }

  /// The gradient of the weights is a sum over rows of `grad` times `in`: one task per panel of inputs, and one for the
  /// bias. Each returns the sum of the squares of its output.
  std::size_t sum_tasks() const { return (in_ + kernels_.panel - 1) / kernels_.panel + 1; }
  double sum(std::size_t task, std::size_t rows, MatrixView in, MatrixView gradient, bool adds,
             const FlatMemory& memory, Workspace& workspace) const;

  /// One task per panel of outputs: an optimizer step, then the panel is repacked.
  std::size_t step_tasks() const {
    return out.size <= kNarrowOutputs ? 1 : (out.size + kernels_.panel - 1) / kernels_.panel;
  }
  void step(std::size_t task, const AdamSteps& by, const FlatMemory& memory);

  const Layer& packed() const { return packed_; }
  const TransposedLayer& transposed() const { return transposed_; }
  std::size_t in() const { return in_; }
  bool learns() const { return weight_.learns || bias_.learns; }
  std::size_t multiply_adds() const { return in_ * out.size * (passes_gradients_ ? 3 : 2); }
  /// One of its learned tensors, if any.
  const Parameter& learned() const { return weight_.learns ? weight_ : bias_; }

  Matrix out;   // output
  Matrix grad;  // gradient of the loss with respect to `out`

 private:
  const Kernels& kernels_;
  std::size_t in_;
  bool passes_gradients_ = false;
  Parameter weight_, bias_;
  Layer packed_;
  TransposedLayer transposed_;
  AlignedFloats zeros_;  // as many zeros as a panel is wide
};

/// A learned tensor that is not part of a layer: its gradient is the sum of the rows of `grad`.
class FreeVector {
 public:
  FreeVector(std::string name, std::size_t size) : parameter{std::move(name), size}, grad(size, size) {}
  /// `places` gives the column of `grad` for each element.
  FreeVector(std::string name, std::size_t columns, std::vector<std::uint32_t> places)
      : parameter{std::move(name), places.size()}, grad(columns, columns), places_(std::move(places)) {}

  double sum(const Kernels& kernels, std::size_t rows, bool adds, const FlatMemory& memory) const;

  Parameter parameter;
  Matrix grad;

 private:
  std::vector<std::uint32_t> places_{};  // empty: in order
};

}  // namespace surefoot
