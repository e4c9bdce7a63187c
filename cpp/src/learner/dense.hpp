// Linear layers that learn: weights in the memory of PyTorch's module, packed for the kernels beside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "surefoot/layer.hpp"
#include "surefoot/learner.hpp"

namespace surefoot {

/// Rows of all samples of a piece; padded to whole panels, as the kernels write them.
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

/// A step of the optimizer for every tensor: by the norms that are clipped, and by how many steps a tensor has done.
class AdamSteps {
 public:
  /// `scales` has a number for each norm that is clipped.
  AdamSteps(const OptimizerSettings& by, std::size_t steps, std::vector<double> scales);
  AdamStep of(const Parameter& parameter) const;

 private:
  const OptimizerSettings& by_;
  std::size_t steps_;
  std::vector<double> scales_;
  AdamStep usual_;  // of a tensor that has missed no step, without its scale
};

/// A tensor of the policy while an update runs: where it lies, and where it is in the optimizer's flat memory.
struct Parameter {
  std::string name;
  std::size_t size;
  const float* value = nullptr;
  std::size_t offset = 0;
  bool learns = false;  // else it keeps its value
  std::size_t part = 0, clip = 0, missed = 0;

  void bind(const TensorReader& tensors, const FlatMemory& memory);
  /// One step of some of its elements.
  void step(const Kernels& kernels, const AdamSteps& by, const FlatMemory& memory, std::size_t first,
            std::size_t count) const;
};

/// A layer between two matrices. Work on rows is done by whichever thread has them; sums over rows and steps of the
/// optimizer are divided into tasks, each with outputs of its own: so no result depends on the number of threads.
class Dense {
 public:
  Dense(const Kernels& kernels, LayerNames names, std::size_t in, std::size_t out);

  void bind(const TensorReader& tensors, const FlatMemory& memory);
  /// Gradients of the inputs are wanted, too.
  void pass_gradients() { passes_gradients_ = true; }
  void reserve(std::size_t rows);

  void forward(std::size_t first, std::size_t count, MatrixView in) {
    packed_.run(kernels_, count, in, out.row(first), out.stride);
  }
  /// From `grad` to the gradient of the inputs, which is added if `adds`.
  void backward(std::size_t first, std::size_t count, Matrix& grad_in, bool adds) const {
    transposed_.run(kernels_, count, grad.view(first), grad_in.row(first), grad_in.stride, adds);
  }

  /// The gradient of the weights is a sum over rows of `grad` times `in`: one task for each panel of inputs, and one
  /// for the bias. Gives the sum of the squares of what the task wrote.
  std::size_t sum_tasks() const { return (in_ + kernels_.panel - 1) / kernels_.panel + 1; }
  double sum(std::size_t task, std::size_t rows, MatrixView in, MatrixView gradient, bool adds,
             const FlatMemory& memory, Workspace& workspace) const;

  /// A task for each panel of outputs: a step of the optimizer, and the panel is packed again.
  std::size_t step_tasks() const {
    return out.size <= kNarrowOutputs ? 1 : (out.size + kernels_.panel - 1) / kernels_.panel;
  }
  void step(std::size_t task, const AdamSteps& by, const FlatMemory& memory);

  const Layer& packed() const { return packed_; }
  const TransposedLayer& transposed() const { return transposed_; }
  std::size_t in() const { return in_; }
  bool learns() const { return weight_.learns || bias_.learns; }
  std::size_t multiply_adds() const { return in_ * out.size * (passes_gradients_ ? 3 : 2); }
  /// One of its tensors that learns, if there is any.
  const Parameter& learned() const { return weight_.learns ? weight_ : bias_; }

  Matrix out;   // what it gives
  Matrix grad;  // how the loss changes with that

 private:
  const Kernels& kernels_;
  std::size_t in_;
  bool passes_gradients_ = false;
  Parameter weight_, bias_;
  Layer packed_;
  TransposedLayer transposed_;
  AlignedFloats zeros_;  // as many as a panel is wide
};

/// A tensor that learns without a layer: its gradient is the sum of the rows of `grad`.
class FreeVector {
 public:
  FreeVector(std::string name, std::size_t size) : parameter{std::move(name), size}, grad(size, size) {}
  /// `places` says which column of `grad` each element has.
  FreeVector(std::string name, std::size_t columns, std::vector<std::uint32_t> places)
      : parameter{std::move(name), places.size()}, grad(columns, columns), places_(std::move(places)) {}

  double sum(const Kernels& kernels, std::size_t rows, bool adds, const FlatMemory& memory) const;

  Parameter parameter;
  Matrix grad;

 private:
  std::vector<std::uint32_t> places_{};  // empty: in order
};

}  // namespace surefoot
