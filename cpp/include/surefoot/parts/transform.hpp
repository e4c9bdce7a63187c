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

/// It is told of every step by the thread that leads, then changes stretches of the gradient, which may run side by
/// side: what it does to an element depends on nothing but that element.
class Transform {
 public:
  Transform(const PartPlan& plan, const Kernels& kernels) : kernels_(kernels), name_(plan.text("name")) {}
  virtual ~Transform() = default;
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;

  /// The name that the user chose: the prefix of its knobs and measures.
  const std::string& name() const { return name_; }

  /// Names of what it measures, as means over all elements, each with what it is of a gradient that was left alone.
  virtual std::vector<std::pair<std::string, double>> measures() const { return {}; }
  static constexpr std::size_t kMostTensors = 8;
  /// Names of the tensors that it remembers, each as large as the gradient; at most `kMostTensors`.
  virtual std::vector<std::string> tensors() const { return {}; }
  /// Before an update.
  virtual void begin(const Knobs&) {}
  /// Before a step; `number` counts from 1.
  virtual void step(std::int64_t) {}
  /// Change a stretch of the gradient and of each tensor; add what it measures of the elements to `sums`.
  virtual void run(std::size_t count, float* gradient, std::span<float* const> tensors, double* sums) const = 0;

 protected:
  const Kernels& kernels_;

 private:
  std::string name_;
};

/// A transform in use, with what it remembers: PyTorch's memory, written in place.
struct ActiveTransform {
  std::unique_ptr<Transform> transform;
  std::int64_t* steps;  // that it has seen
  std::vector<float*> tensors;
};

}  // namespace surefoot
