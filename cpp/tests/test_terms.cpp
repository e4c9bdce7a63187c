// Terms of the objective: against formulas in double, whose gradients are finite differences.
#include <cmath>
#include <string>
#include <vector>

#include "check.hpp"
#include "same_bits.hpp"
#include "surefoot/parts/term.hpp"

namespace surefoot {
namespace {

using Floats = std::vector<float>;

struct Penalty {
  Floats loss, gradient;
};

/// The KL penalty of rows with these log-ratios; the gradient was 1 everywhere before.
Penalty kl_penalty(const Kernels& set, const Floats& log_ratio, float weight) {
  const auto term = make_part<Term>({"kl_penalty"}, set);
  const std::size_t count = log_ratio.size();
  const Floats nothing(count);
  Penalty found{Floats(count), Floats(count, 1.0f)};
  Floats by_entropy(count);
  float* const loss = found.loss.data();
  const float* const none = nothing.data();
  term->run({count, log_ratio.data(), none, none, none, {}}, weight, {&loss, 1},
            {found.gradient.data(), by_entropy.data()});
  CHECK_EQUAL(by_entropy, nothing);
  return found;
}

Floats log_ratios(std::size_t count) {
  Floats made(count);
  for (std::size_t i = 0; i < count; ++i) made[i] = static_cast<float>(2.5 * std::sin(1.7 * static_cast<double>(i)));
  return made;
}

TEST(the_kl_penalty_learns_by_its_formula) {
  constexpr double kStep = 1e-5, kWeight = 0.3;
  const auto k3 = [](double log_ratio) { return std::expm1(log_ratio) - log_ratio; };
  for (const Kernels* set : available_kernels()) {
    for (const std::size_t count : {1, 7, 33}) {
      const Floats log_ratio = log_ratios(count);
      const Penalty found = kl_penalty(*set, log_ratio, kWeight);
      Floats loss, gradient;
      for (const double at : log_ratio) {
        loss.push_back(static_cast<float>(k3(at)));
        gradient.push_back(static_cast<float>(1 + kWeight * (k3(at + kStep) - k3(at - kStep)) / (2 * kStep)));
      }
      CHECK_NEAR(found.loss, loss, 4e-6);
      CHECK_NEAR(found.gradient, gradient, 4e-6);
    }
  }
}

TEST(the_kl_penalty_is_exactly_0_where_the_policies_agree) {
  for (const Kernels* set : available_kernels()) {
    const Penalty found = kl_penalty(*set, {0, -0.0f, 0}, 5);
    CHECK_EQUAL(found.loss, (Floats{0, 0, 0}));
    CHECK_EQUAL(found.gradient, (Floats{1, 1, 1}));
  }
}

TEST(a_kl_penalty_without_weight_is_only_measured) {
  const float kInfinity = std::numeric_limits<float>::infinity();
  for (const Kernels* set : available_kernels()) {
    const Penalty found = kl_penalty(*set, {200, 1}, 0);
    CHECK_EQUAL(found.loss[0], kInfinity);
    CHECK_EQUAL(found.gradient, (Floats{1, 1}));
    CHECK(std::isnan(kl_penalty(*set, {std::nanf("")}, 1).gradient[0]));
  }
}

TEST(instructions_agree_on_the_kl_penalty) {
  check_same_bits([](const Kernels& set) {
    Penalty found = kl_penalty(set, log_ratios(101), 0.7f);
    found.loss.insert(found.loss.end(), found.gradient.begin(), found.gradient.end());
    return found.loss;
  });
}

}  // namespace
}  // namespace surefoot
