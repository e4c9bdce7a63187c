#include "choices.hpp"

#include <numeric>
#include <utility>

namespace surefoot {
namespace {

enum Slot : std::size_t { kLogits, kNoise, kScratch };

std::vector<std::int64_t> sizes_of(const PartPlan& plan) {
  std::vector<std::int64_t> sizes = plan.integers("sizes");
  const bool are_positive = std::all_of(sizes.begin(), sizes.end(), [](std::int64_t size) { return size > 0; });
  if (sizes.empty() || !are_positive) plan.refuse("sizes", "must have a positive number for each element");
  return sizes;
}

std::size_t sum_of(const std::vector<std::int64_t>& sizes) {
  return static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
}

}  // namespace

ChoiceHead::ChoiceHead(const PartPlan& plan, const Kernels& kernels, std::vector<std::int64_t> sizes,
                       std::size_t num_logits, void (*sample_choices)(const ChoiceBlock& block))
    : Head(kernels),
      sizes_(std::move(sizes)),
      layer_(plan.text("layer")),
      num_logits_(num_logits),
      most_(*std::max_element(sizes_.begin(), sizes_.end())),
      sample_choices_(sample_choices) {}

void ChoiceHead::sample(const PartRows& rows, const bool* mask, const NoiseKey& key, const Sampled& out) const {
  sample_choices_({.rows = rows.count,
                   .count = sizes_.size(),
                   .sizes = sizes_.data(),
                   .logits = linear(logits_, rows, kLogits),
                   .mask = mask,
                   .noise = drawn(rows, key, kNoise),
                   .scratch = rows.scratch.floats(kScratch, static_cast<std::size_t>(most_) * kernels_.lanes),
                   .choice = out.choice,
                   .log_prob = out.log_prob});
}

CategoricalHead::CategoricalHead(const PartPlan& plan, const Kernels& kernels)
    : ChoiceHead(plan, kernels, sizes_of(plan), sum_of(sizes_of(plan)), kernels.categorical),
      start_(plan.integers("start")) {
  if (start_.size() != sizes_.size()) plan.refuse("start", "must have as many numbers as sizes");
}

bool CategoricalHead::leaves_a_choice(const bool* mask) const {
  return std::all_of(sizes_.begin(), sizes_.end(), [&](std::int64_t size) {
    const bool* element = std::exchange(mask, mask + size);
    return std::any_of(element, mask, [](bool is_allowed) { return is_allowed; });
  });
}

void CategoricalHead::choices_to_env(std::size_t rows, const std::int64_t* choice, std::int64_t* env_choice) const {
  for (std::size_t i = 0; i < rows * start_.size(); ++i) env_choice[i] = choice[i] + start_[i % start_.size()];
}

}  // namespace surefoot
