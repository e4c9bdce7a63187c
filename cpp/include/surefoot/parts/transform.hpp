// A gradient transform: changes the gradient of all parameters before its norm is clipped.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "surefoot/parts/part.hpp"
#include "surefoot/parts/term.hpp"

namespace surefoot {

/// Base class of gradient transforms. The leading thread calls `step` before every optimizer step; then `run` changes
/// ranges of the gradient, possibly concurrently, so its effect on an element must depend only on that element.
class Transform : public KernelUser {
 public:
  Transform(const PartPlan& plan, const Kernels& kernels) : KernelUser(kernels), name_(plan.text("name")) {}

  /// The name that the user chose, which prefixes its knobs and measures.
  const std::string& name() const { return name_; }

  /// Names of its measures, which are means over all elements, each with its value for an unchanged gradient.
  virtual std::vector<std::pair<std::string, double>> measures() const { return {}; }
  static constexpr std::size_t kMostTensors = 8;
  /// Names of the tensors of its state, each as large as the gradient; at most `kMostTensors`.
  virtual std::vector<std::string> tensors() const { return {}; }
  /// Called before an update.
  virtual void begin(const Knobs&) {}
  /// Called before a step; `number` counts from 1.
  virtual void step(std::int64_t) {}
  /// Changes a range of the gradient and of each state tensor; adds the measures of the elements to `sums`.
  virtual void run(std::size_t count, float* gradient, std::span<float* const> tensors, double* sums) const = 0;

 private:
  std::string name_;
};

/// A transform in use with its state: PyTorch's memory, written in place.
struct ActiveTransform {
  std::unique_ptr<Transform> transform;
  std::int64_t* steps;  // number of steps so far
  std::vector<float*> tensors;
};

}  // namespace surefoot
