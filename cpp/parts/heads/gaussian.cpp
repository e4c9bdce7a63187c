#include "gaussian.hpp"

#include "bounds.hpp"
#include "surefoot/box_muller.hpp"

namespace surefoot {
namespace {

enum Slot : std::size_t { kMean, kStd, kNoise };
enum LearningSlot : std::size_t { kGrown, kLearnedStd, kLogStd, kDistance, kMeanSlope, kStdSlope };

/// A NaN passes through.
float clipped(float value, float low, float high) {
  if (value < low) value = low;
  return value > high ? high : value;
}

const RegisteredPart<Head, GaussianHead> kGaussian{"gaussian"};

}  // namespace

GaussianHead::GaussianHead(const PartPlan& plan, const Kernels& kernels, const Quadrature* squash)
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
  if (depends_on_state()) tensors.check_linear(std_layer_, in, action_size());
}

void GaussianHead::pack(const TensorReader& tensors) {
  const std::size_t size = action_size();
  mean_.pack(kernels_, tensors, mean_layer_);
  log_std_.resize(size);
  std::copy_n(tensors[log_std_name_].data, size, log_std_.data());
  std_.resize(size);
  kernels_.exp(log_std_.data(), std_.data(), size);
  for (std::size_t i = 0; i < size; ++i) std_.data()[i] += std_floor_;
  if (depends_on_state()) std_head_.pack(kernels_, tensors, std_layer_);
}

void GaussianHead::shape_noise(std::size_t rows, float* uniforms) const { box_muller(uniforms, rows * noise_size()); }

void GaussianHead::sample(const PartRows& rows, const bool*, const NoiseKey& key, const Sampled& out) const {
  kernels_.gaussian({.rows = rows.count,
                     .size = action_size(),
                     .mean = linear(mean_, rows, kMean),
                     .std = depends_on_state() ? state_std(rows) : MatrixView{std_.data(), 0},
                     .noise = drawn(rows, key, kNoise),
                     .squash = squash_ != nullptr,
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

std::vector<Learned> GaussianHead::layers() const {
  std::vector<Learned> layers{{mean_layer_, action_size()}};
  if (depends_on_state()) layers.push_back({std_layer_, action_size()});
  return layers;
}

GaussianHead::Kept GaussianHead::kept(const LearnedRows& rows) const {
  const std::size_t size = action_size(), count = depends_on_state() ? rows.count * size : size;
  const std::size_t in_lanes = rounded_up(rows.count, kernels_.lanes) * size;
  const auto slopes = [&](std::size_t slot) { return squash_ ? rows.scratch.floats(slot, in_lanes) : nullptr; };
  return {.count = count,
          .stride = depends_on_state() ? size : 0,
          .grown = rows.scratch.floats(kGrown, count),
          .std = rows.scratch.floats(kLearnedStd, count),
          .log_std = rows.scratch.floats(kLogStd, count),
          .distance = rows.scratch.floats(kDistance, in_lanes),
          .mean_slope = slopes(kMeanSlope),
          .std_slope = slopes(kStdSlope)};
}

void GaussianHead::evaluate(const LearnedRows& rows, const Done& done, float* log_prob, float* entropy) const {
  const Kept kept = this->kept(rows);
  const std::size_t size = action_size();
  for (std::size_t i = 0; i < kept.count; i += size) {
    std::copy_n(rows.vectors[0], size, kept.grown + i);
    if (!depends_on_state()) continue;
    const float* const raw = rows.given[1].data + i / size * rows.given[1].stride;
    for (std::size_t j = 0; j < size; ++j) kept.grown[i + j] += raw[j];
  }
  kernels_.exp(kept.grown, kept.grown, kept.count);
  for (std::size_t i = 0; i < kept.count; ++i) kept.std[i] = kept.grown[i] + std_floor_;
  kernels_.log(kept.std, kept.log_std, kept.count);
  kernels_.evaluate_gaussian({.rows = rows.count,
                              .size = size,
                              .mean = rows.given[0],
                              .std = {kept.std, kept.stride},
                              .log_std = {kept.log_std, kept.stride},
                              .action = done.action,
                              .squash = squash_,
                              .distance = kept.distance,
                              .mean_slope = kept.mean_slope,
                              .std_slope = kept.std_slope,
                              .log_prob = log_prob,
                              .entropy = entropy});
}

void GaussianHead::gradient(const LearnedRows& rows, const Done&, const float* by_log_prob, const float* by_entropy,
                            const GivenGradient& out) const {
  const Kept kept = this->kept(rows);
  const std::size_t size = action_size();
  float* const by_log_std = out.vectors[0];
  float* const by_raw = depends_on_state() ? out.given[1] : by_log_std;
  const std::size_t by_raw_stride = depends_on_state() ? rows.given[1].stride : size;
  kernels_.gaussian_gradient({.rows = rows.count,
                              .size = size,
                              .std = {kept.std, kept.stride},
                              .grown = {kept.grown, kept.stride},
                              .distance = kept.distance,
                              .mean_slope = kept.mean_slope,
                              .std_slope = kept.std_slope,
                              .by_log_prob = by_log_prob,
                              .by_entropy = by_entropy,
                              .by_mean = out.given[0],
                              .by_mean_stride = rows.given[0].stride,
                              .by_raw = by_raw,
                              .by_raw_stride = by_raw_stride});
  if (!depends_on_state() || !by_log_std) return;
  for (std::size_t row = 0; row < rows.count; ++row) {
    std::copy_n(by_raw + row * by_raw_stride, size, by_log_std + row * size);
  }
}

}  // namespace surefoot
