#include "gaussian.hpp"

#include "bounds.hpp"
#include "surefoot/box_muller.hpp"

namespace surefoot {
namespace {

enum Slot : std::size_t { kMean, kStd, kNoise };

/// A NaN passes through.
float clipped(float value, float low, float high) {
  if (value < low) value = low;
  return value > high ? high : value;
}

const RegisteredPart<Head, GaussianHead> kGaussian{"gaussian"};

}  // namespace

GaussianHead::GaussianHead(const PartPlan& plan, const Kernels& kernels, bool squash)
    : Head(kernels),
      low_(lower_bounds(plan)),
      high_(upper_bounds(plan)),
      mean_layer_(plan.text("layer")),
      std_layer_(plan.text("std_layer")),
      log_std_name_(plan.text("log_std")),
      std_floor_(static_cast<float>(plan.number("std_floor"))),
      rescale_(plan.flag("rescale")),
      squash_(squash) {}

void GaussianHead::check(TensorReader& tensors, std::size_t in) const {
  tensors.check_linear(mean_layer_, in, action_size());
  tensors.check_size(log_std_name_, action_size());
  if (!std_layer_.empty()) tensors.check_linear(std_layer_, in, action_size());
}

void GaussianHead::pack(const TensorReader& tensors) {
  const std::size_t size = action_size();
  mean_.pack(kernels_, tensors, mean_layer_);
  log_std_.resize(size);
  std::copy_n(tensors[log_std_name_].data, size, log_std_.data());
  std_.resize(size);
  kernels_.exp(log_std_.data(), std_.data(), size);
  for (std::size_t i = 0; i < size; ++i) std_.data()[i] += std_floor_;
  if (!std_layer_.empty()) std_head_.pack(kernels_, tensors, std_layer_);
}

void GaussianHead::shape_noise(std::size_t rows, float* uniforms) const { box_muller(uniforms, rows * noise_size()); }

void GaussianHead::sample(const PartRows& rows, const bool*, const NoiseKey& key, const Sampled& out) const {
  kernels_.gaussian({.rows = rows.count,
                     .size = action_size(),
                     .mean = linear(mean_, rows, kMean),
                     .std = std_layer_.empty() ? MatrixView{std_.data(), 0} : state_std(rows),
                     .noise = drawn(rows, key, kNoise),
                     .squash = squash_,
                     .action = out.action,
                     .log_prob = out.log_prob});
}

MatrixView GaussianHead::state_std(const PartRows& rows) const {
  const MatrixView raw = linear(std_head_, rows, kStd);
  const std::size_t count = rows.count * raw.stride;
  float* const std = rows.scratch.floats(kStd, count);
  for (std::size_t row = 0; row < rows.count; ++row) {
    for (std::size_t j = 0; j < log_std_.size(); ++j) std[row * raw.stride + j] += log_std_.data()[j];
  }
  kernels_.exp(std, std, count);
  for (std::size_t i = 0; i < count; ++i) std[i] += std_floor_;
  return raw;
}

void GaussianHead::to_env(std::size_t rows, const float* action, float* env_action) const {
  const std::size_t size = action_size();
  for (std::size_t i = 0; i < rows * size; ++i) {
    const float low = low_[i % size], high = high_[i % size];
    const float scaled = rescale_ ? low + (action[i] + 1) * (0.5f * (high - low)) : action[i];
    env_action[i] = clipped(scaled, low, high);
  }
}

}  // namespace surefoot
