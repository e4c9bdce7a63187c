// What a policy with a set encoder learns from labels, from rows of its own and from those of others.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "check.hpp"
#include "flat_tensors.hpp"
#include "made_up.hpp"
#include "surefoot/learner.hpp"

namespace surefoot {
namespace {

constexpr std::size_t kSamples = 5, kElements = 3, kNumbers = 2, kFeatures = 4, kChoices = 3;
constexpr float kOwn = 1.25f;
const std::vector<float> kWeight{kOwn, 0, kOwn, kOwn, kOwn}, kAdvantage{2, -5, 0.5f, -1, 1};
const std::vector<std::int64_t> kChoice{1, 0, 2, 2, 0}, kLabel{0, 2, 1, 2, 1};
constexpr double kCloneWeight = 0.7;

PolicyPlan set_plan() {
  PartSettings settings{{"element", std::string("element")},
                        {"elements", static_cast<double>(kElements)},
                        {"numbers", static_cast<double>(kNumbers)},
                        {"features", static_cast<double>(kFeatures)},
                        {"layers", std::vector<std::string>()}};
  return plain_plan(kElements * kNumbers, categorical("head", kChoices), {"set", settings});
}

MadeUp set_tensors() {
  MadeUp made_up;
  made_up.add_linear("element", kFeatures, kNumbers);
  made_up.add_linear("head", kChoices, kFeatures);
  made_up.add_linear("value", 1, kFeatures);
  return made_up;
}

std::vector<float> made_up_obs() {
  std::vector<float> obs(kSamples * kElements * kNumbers);
  for (std::size_t i = 0; i < obs.size(); ++i) obs[i] = static_cast<float>(std::sin(3.1 * static_cast<double>(i)));
  return obs;
}

/// Log-probabilities of all choices for a sample, with weights in the order of `set_tensors`.
std::vector<double> log_probs(const std::vector<double>& values, std::size_t sample) {
  const std::vector<float> obs = made_up_obs();
  const double *const weight = values.data(), *const bias = weight + kFeatures * kNumbers;
  const double *const head = bias + kFeatures, *const head_bias = head + kChoices * kFeatures;
  std::vector<double> features(kFeatures), logits(kChoices);
  for (std::size_t f = 0; f < kFeatures; ++f) {
    for (std::size_t element = 0; element < kElements; ++element) {
      double sum = bias[f];
      for (std::size_t i = 0; i < kNumbers; ++i) {
        sum += weight[f * kNumbers + i] * static_cast<double>(obs[(sample * kElements + element) * kNumbers + i]);
      }
      features[f] += std::max(sum, 0.0) / kElements;
    }
  }
  double total = 0;
  for (std::size_t choice = 0; choice < kChoices; ++choice) {
    logits[choice] = head_bias[choice];
    for (std::size_t f = 0; f < kFeatures; ++f) logits[choice] += head[choice * kFeatures + f] * features[f];
    total += std::exp(logits[choice]);
  }
  for (double& logit : logits) logit -= std::log(total);
  return logits;
}

/// Labels count in all rows, the surrogate in own ones.
double loss(const std::vector<double>& values, const std::vector<float>& old_log_prob) {
  double sum = 0;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const std::vector<double> now = log_probs(values, i);
    const double ratio = std::exp(now[static_cast<std::size_t>(kChoice[i])] - static_cast<double>(old_log_prob[i]));
    sum -= kCloneWeight * now[static_cast<std::size_t>(kLabel[i])];
    sum -= static_cast<double>(kWeight[i]) * static_cast<double>(kAdvantage[i]) * ratio;
  }
  return sum / kSamples;
}

TEST(labels_count_in_all_rows_and_the_surrogate_in_own_ones) {
  for (const Kernels* kernels : available_kernels()) {
    const MadeUp made_up = set_tensors();
    FlatTensors flat(made_up.named());
    const std::vector<double> start(flat.values.begin(), flat.values.end());
    std::vector<float> log_prob;
    for (std::size_t i = 0; i < kSamples; ++i) {
      log_prob.push_back(static_cast<float>(log_probs(start, i)[static_cast<std::size_t>(kChoice[i])]));
    }
    Learner learner(set_plan(), {{"surrogate"}, {"clone", {{"label", std::string("label")}}}}, flat.tensors, *kernels);
    const std::vector<float> obs = made_up_obs(), nothing(kSamples);
    Update update = one_step({kSamples,
                              {obs.data()},
                              nullptr,
                              kChoice.data(),
                              nullptr,
                              log_prob.data(),
                              nothing.data(),
                              1,
                              kAdvantage.data(),
                              nothing.data()},
                             {1, kCloneWeight});
    update.samples.extras = {
        {"label", ExtraType::kInteger, 1, static_cast<const std::byte*>(static_cast<const void*>(kLabel.data()))}};
    update.samples.weight = kWeight.data();
    ThreadPool pool(2);
    CHECK_EQUAL(learner.learn(update, flat.tensors, flat.memory, pool).steps, 1);
    const std::size_t learned = flat.memory.offsets["value.weight"];
    for (std::size_t i = 0; i < learned; ++i) {
      constexpr double kStep = 1e-5;
      std::vector<double> more = start, less = start;
      more[i] += kStep;
      less[i] -= kStep;
      CHECK_NEAR(flat.gradient[i], (loss(more, log_prob) - loss(less, log_prob)) / (2 * kStep), 2e-5);
    }
    update.samples.extras.clear();
    CHECK_THROWS(learner.learn(update, flat.tensors, flat.memory, pool), std::invalid_argument);
  }
}

}  // namespace
}  // namespace surefoot
