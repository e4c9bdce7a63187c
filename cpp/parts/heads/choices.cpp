#include "choices.hpp"

#include <numeric>
#include <utility>

namespace surefoot {
namespace {

enum Slot : std::size_t { kLogits, kNoise, kScratch };
enum LearningSlot : std::size_t { kLogProbs, kProbs, kEntropies };

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
                       std::size_t num_logits, const ChoiceKernels& choices)
    : Head(kernels),
      sizes_(std::move(sizes)),
      layer_(plan.text("layer")),
      num_logits_(num_logits),
      most_(*std::max_element(sizes_.begin(), sizes_.end())),
      choices_(choices) {}

void ChoiceHead::sample(const PartRows& rows, const bool* mask, const NoiseKey& key, const Sampled& out) const {
  choices_.sample({.rows = rows.count,
                   .count = sizes_.size(),
                   .sizes = sizes_.data(),
                   .logits = linear(logits_, rows, kLogits),
                   .mask = mask,
                   .noise = drawn(rows, key, kNoise),
                   .scratch = rows.scratch.floats(kScratch, static_cast<std::size_t>(most_) * kernels_.lanes),
                   .choice = out.choice,
                   .log_prob = out.log_prob});
}

ChoiceEvaluation ChoiceHead::evaluation(const LearnedRows& rows, const Done& done, float* log_prob,
                                        float* entropy) const {
  const std::size_t in_lanes = rounded_up(rows.count, kernels_.lanes);
  return {.rows = rows.count,
          .count = sizes_.size(),
          .sizes = sizes_.data(),
          .num_logits = num_logits_,
          .logits = rows.given[0],
          .mask = done.mask,
          .choice = done.choice,
          .log_probs = rows.scratch.floats(kLogProbs, in_lanes * num_logits_),
          .probs = rows.scratch.floats(kProbs, in_lanes * num_logits_),
          .entropies = rows.scratch.floats(kEntropies, in_lanes * sizes_.size()),
          .log_prob = log_prob,
          .entropy = entropy};
}

void ChoiceHead::evaluate(const LearnedRows& rows, const Done& done, float* log_prob, float* entropy) const {
  choices_.evaluate(evaluation(rows, done, log_prob, entropy));
}

void ChoiceHead::gradient(const LearnedRows& rows, const Done& done, const float* by_log_prob, const float* by_entropy,
                          const GivenGradient& out) const {
  choices_.gradient({evaluation(rows, done, nullptr, nullptr), by_log_prob, by_entropy, out.given[0]});
}

CategoricalHead::CategoricalHead(const PartPlan& plan, const Kernels& kernels)
    : ChoiceHead(plan, kernels, sizes_of(plan), sum_of(sizes_of(plan)),
                 {kernels.categorical, kernels.evaluate_categorical, kernels.categorical_gradient}),
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
