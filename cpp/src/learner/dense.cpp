#include "dense.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace surefoot {

namespace {

enum Slot : std::size_t { kInputs, kGradient };

/// Writes the sums of some columns, or of all in order, to the gradient at `to`; returns the sum of their squares.
double write_sums(const Kernels& kernels, std::size_t rows, std::size_t columns, MatrixView grad,
                  const std::vector<std::uint32_t>& places, bool adds, float* to) {
  std::vector<double> sums(columns);
  kernels.column_sums(rows, columns, grad, sums.data());
  const std::size_t count = places.empty() ? columns : places.size();
  for (std::size_t i = 0; i < count; ++i) {
    const double sum = sums[places.empty() ? i : places[i]];
    to[i] = static_cast<float>(adds ? to[i] + sum : sum);
  }
  return kernels.sum_squares(1, count, {to, count});
}

AdamStep adam_step(const OptimizerSettings& by, std::size_t steps) {
  const double count = static_cast<double>(steps);
  const double mean_bias = 1 - std::pow(by.beta1, count), square_bias = 1 - std::pow(by.beta2, count);
  return {.scale = 1,
          .added_decay = static_cast<float>(by.is_decoupled ? 0 : by.weight_decay),
          .kept = static_cast<float>(by.is_decoupled ? 1 - by.lr * by.weight_decay : 1),
          .new_mean = static_cast<float>(1 - by.beta1),
          .old_square = static_cast<float>(by.beta2),
          .new_square = static_cast<float>(1 - by.beta2),
          .rate = static_cast<float>(by.lr / mean_bias),
          .root_scale = static_cast<float>(1 / std::sqrt(square_bias)),
          .epsilon = static_cast<float>(by.epsilon)};
}

}  // namespace

AdamSteps::AdamSteps(const OptimizerSettings& by, std::size_t steps, std::vector<double> scales)
    : by_(by), steps_(steps), scales_(std::move(scales)), usual_(adam_step(by, steps)) {}

AdamStep AdamSteps::of(const Parameter& parameter) const {
  AdamStep step = parameter.missed == 0 ? usual_ : adam_step(by_, steps_ - parameter.missed);
  step.scale = static_cast<float>(scales_[parameter.clip]);
  return step;
}

void Parameter::bind(const TensorReader& tensors, const FlatMemory& memory) {
  value = tensors[name].data;
  const auto found = memory.offsets.find(name);
  learns = found != memory.offsets.end();
  if (!learns) return;
  offset = found->second;
  part = memory.part_at(offset);
  clip = memory.clips[part];
  const auto late = memory.missed.find(name);
  missed = late == memory.missed.end() ? 0 : late->second;
}

void Parameter::step(const Kernels& kernels, const AdamSteps& by, const FlatMemory& memory, std::size_t first,
                     std::size_t count) const {
  const std::size_t begin = offset + first;
  kernels.adam(by.of(*this), count, memory.gradient + begin, memory.value + begin, memory.mean + begin,
               memory.square + begin);
}

Dense::Dense(const Kernels& kernels, LayerNames names, std::size_t in, std::size_t size)
    : out(size, rounded_up(size, kernels.panel)),
      grad(size, rounded_up(size, kernels.panel)),
      kernels_(kernels),
      in_(in),
      weight_{std::move(names.weight), in * size},
      bias_{std::move(names.bias), size} {
  zeros_.resize(kernels.panel);
}

void Dense::bind(const TensorReader& tensors, const FlatMemory& memory) {
  weight_.bind(tensors, memory);
  bias_.bind(tensors, memory);
  packed_.pack(kernels_, in_, out.size, weight_.value, bias_.value);
  if (passes_gradients_) transposed_.pack(kernels_, in_, out.size, weight_.value);
}

void Dense::reserve(std::size_t rows) {
  out.reserve(rows);
  grad.reserve(rows);
}

double Dense::sum(std::size_t task, std::size_t rows, MatrixView in, MatrixView gradient, bool adds,
                  const FlatMemory& memory, Workspace& workspace) const {
  const std::size_t panel = kernels_.panel, size = out.size;
  if (task + 1 == sum_tasks()) {
    if (!bias_.learns) return 0;
    return write_sums(kernels_, rows, size, gradient, {}, adds, memory.gradient + bias_.offset);
  }
  if (!weight_.learns) return 0;
  const std::size_t first = task * panel, columns = std::min(panel, in_ - first);
  float* const inputs = workspace.floats(kInputs, rows * panel);
  kernels_.copy_panel(rows, columns, {in.data + first, in.stride}, inputs);
  float* const to = memory.gradient + weight_.offset + first;
  if (columns == panel) {  // whole panels are written directly
    kernels_.linear_transposed({rows, columns, inputs, adds ? nullptr : zeros_.data()}, size, gradient, to, in_);
    return kernels_.sum_squares(size, columns, {to, in_});
  }
  float* const sums = workspace.floats(kGradient, size * panel);
  kernels_.linear_transposed({rows, columns, inputs, zeros_.data()}, size, gradient, sums, panel);
  for (std::size_t output = 0; output < size; ++output) {
    for (std::size_t i = 0; i < columns; ++i) {
      float& weight = to[output * in_ + i];
      weight = sums[output * panel + i] + (adds ? weight : 0.0f);
    }
  }
  return kernels_.sum_squares(size, columns, {to, in_});
}

void Dense::step(std::size_t task, const AdamSteps& by, const FlatMemory& memory) {
  const std::size_t first = packed_.first_of(task), count = packed_.outputs_of(task);
  if (weight_.learns) weight_.step(kernels_, by, memory, first * in_, count * in_);
  if (bias_.learns) bias_.step(kernels_, by, memory, first, count);
  if (!learns()) return;
  packed_.pack_panel(task, weight_.value, bias_.value);
  if (passes_gradients_) transposed_.pack_outputs(first, count, weight_.value);
}

double FreeVector::sum(const Kernels& kernels, std::size_t rows, bool adds, const FlatMemory& memory) const {
  if (!parameter.learns) return 0;
  return write_sums(kernels, rows, grad.size, grad.view(), places_, adds, memory.gradient + parameter.offset);
}

}  // namespace surefoot
