#include "observations.hpp"

#include <algorithm>

namespace surefoot {

namespace {

constexpr std::size_t kTaskRows = 256;

}  // namespace

void Observations::begin(const LearnerSamples& samples, const TensorReader& tensors) {
  samples_ = &samples;
  const std::vector<ObsPlan>& plans = net_.plan.obs;
  normalized_.resize(plans.size());
  prepared_ = samples.obs;
  shifts_.assign(plans.size(), {nullptr, nullptr, 0});
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const ObsPlan& plan = plans[i];
    if (plan.normalizer.empty()) continue;
    if (normalized_[i].size() < samples.count * plan.size) normalized_[i].resize(samples.count * plan.size);
    prepared_[i] = normalized_[i].data();
    shifts_[i] = {tensors[plan.normalizer + ".shift"].data, tensors[plan.normalizer + ".scale"].data, plan.clip};
  }
}

std::size_t Observations::num_tasks() const { return (samples_->count + kTaskRows - 1) / kTaskRows; }

void Observations::normalize(std::size_t task) {
  const std::size_t first = task * kTaskRows, rows = std::min(kTaskRows, samples_->count - first);
  for (std::size_t i = 0; i < shifts_.size(); ++i) {
    if (shifts_[i].shift == nullptr) continue;
    const std::size_t size = net_.plan.obs[i].size, begin = first * size;
    kernels_.normalize(shifts_[i], rows, size, samples_->obs[i] + begin, normalized_[i].data() + begin);
  }
}

void Observations::gather(const Piece& piece, Block block) {
  for (std::size_t leaf = 0; leaf < prepared_.size(); ++leaf) {
    Matrix& obs = net_.obs[leaf];
    const std::uint8_t* const image = samples_->images.empty() ? nullptr : samples_->images[leaf];
    for (std::size_t row = block.first; row < block.first + block.count; ++row) {
      const std::size_t first = static_cast<std::size_t>(piece.samples[row]) * obs.size;
      float* const to = obs.row(row);
      if (image == nullptr) {
        std::copy_n(prepared_[leaf] + first, obs.size, to);
      } else {
        for (std::size_t i = 0; i < obs.size; ++i) to[i] = static_cast<float>(image[first + i]) / 255.0f;
      }
    }
  }
}

}  // namespace surefoot
