// Gradient transforms against their formulas in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "../src/learner/transforms.hpp"
#include "check.hpp"
#include "same_bits.hpp"

namespace surefoot {
namespace {

using Floats = std::vector<float>;

constexpr std::size_t kStretch = 3000;
constexpr double kBeta = 0.9, kFloor = 0.3, kEpsilon = 1e-8, kStrength = 0.5;

/// Variance scaling of a gradient, step by step, as the learner runs it.
struct Scaling {
  Floats gradient, mean, variance;
  std::int64_t steps = 0;
  UpdateRecord record{};
  const Kernels& set;
  std::vector<ActiveTransform> active{};

  Scaling(const Kernels& kernels, std::size_t size, double warmup = 0, double floor = kFloor)
      : gradient(size), mean(size), variance(size), set(kernels) {
    const PartPlan plan{
        "variance_scaling",
        {{"name", "vgs"}, {"beta", kBeta}, {"warmup", warmup}, {"floor", floor}, {"epsilon", kEpsilon}}};
    active.push_back({make_part<Transform>(plan, kernels), &steps, {mean.data(), variance.data()}});
    active[0].transform->begin({{"vgs.strength", kStrength}});
  }

  /// Gives the squares of the changed gradient.
  std::vector<double> step(const Floats& given, std::size_t threads = 1) {
    gradient = given;
    const std::size_t size = gradient.size();
    const FlatMemory memory{nullptr, gradient.data(), nullptr, nullptr, size, {}, {}, {{0, size, 0}}, {0}};
    const double before = set.sum_squares(1, size, {given.data(), size});
    std::vector<Stretch> stretches;
    for (std::size_t first = 0; first < size; first += kStretch) {
      stretches.push_back({first, std::min(kStretch, size - first), 0});
    }
    ThreadPool pool(threads);
    Crew crew(threads);
    std::vector<double> squares;
    pool.run(threads, [&](std::size_t thread) {
      if (thread > 0) return crew.help(thread);
      squares = transformed(set, crew, active, memory, stretches, before, record);
      crew.dismiss();
    });
    return squares;
  }
};

Floats made_up(std::size_t count, std::size_t step) {
  Floats made(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double noise = std::sin(1.7 * static_cast<double>((i * 31 + step * 17) % 1013));
    made[i] = static_cast<float>(0.02 * (static_cast<double>(i % 5) * 0.2 + noise));
  }
  return made;
}

TEST(variance_scaling_is_its_formula) {
  for (const Kernels* set : available_kernels()) {
    for (const std::size_t size : {1, 5, 16, 39, 5000}) {
      Scaling scaling(*set, size);
      std::vector<double> first(size), second(size);  // sums of g and of its square, as the formula has them
      double weights = 0;
      for (std::size_t step = 0; step < 30; ++step) {
        const Floats given = made_up(size, step);
        const std::vector<double> squares = scaling.step(given);
        weights = kBeta * weights + 1 - kBeta;
        double scales = 0, at_floor = 0, square = 0;
        for (std::size_t i = 0; i < size; ++i) {
          const double g = given[i];
          first[i] = kBeta * first[i] + (1 - kBeta) * g;
          second[i] = kBeta * second[i] + (1 - kBeta) * g * g;
          const double mean = first[i] / weights, variance = second[i] / weights - mean * mean;
          const double raw = 1 / (1 + kStrength * variance / (mean * mean + kEpsilon)), scale = std::max(kFloor, raw);
          CHECK(std::abs(scaling.gradient[i] - g * scale) <= 1e-5 * std::abs(g));
          scales += scale;
          at_floor += raw <= kFloor ? 1 : 0;
          square += std::pow(static_cast<double>(scaling.gradient[i]), 2);
        }
        const double* const measured = scaling.record.transformed.data() + 2 * step;
        CHECK(std::abs(measured[0] - scales / static_cast<double>(size)) < 1e-5);
        CHECK(std::abs(measured[1] - at_floor / static_cast<double>(size)) < 1e-9);
        CHECK(std::abs(std::accumulate(squares.begin(), squares.end(), 0.0) - square) <= 1e-12 * square);
      }
      CHECK_EQUAL(scaling.steps, 30);
    }
  }
}

TEST(a_constant_gradient_is_never_scaled) {
  for (const Kernels* set : available_kernels()) {
    Scaling scaling(*set, 1000);
    Floats given = made_up(1000, 3);
    given[0] = 1e17f;
    given[1] = 1e-38f;
    given[2] = -0.1f;
    for (std::size_t step = 0; step < 50; ++step) {
      scaling.step(given);
      CHECK_EQUAL(scaling.gradient, given);
    }
    CHECK_EQUAL(scaling.variance, Floats(1000));
    for (std::size_t i = 0; i < scaling.record.transformed.size(); i += 2) {
      CHECK_EQUAL(scaling.record.transformed[i], 1.0);
      CHECK_EQUAL(scaling.record.transformed[i + 1], 0.0);
    }
  }
}

TEST(moments_are_measured_but_nothing_is_scaled_in_the_warm_up) {
  for (const Kernels* set : available_kernels()) {
    Scaling scaling(*set, 40, 4), other(*set, 40);
    for (std::size_t step = 0; step < 6; ++step) {
      const Floats given = made_up(40, step);
      scaling.step(given);
      other.step(given);
      CHECK_EQUAL(scaling.gradient == given, step < 4);
    }
    CHECK_EQUAL(scaling.gradient, other.gradient);
    CHECK_EQUAL(scaling.variance, other.variance);
  }
}

TEST(nothing_remembers_a_gradient_that_is_not_sound) {
  for (const Kernels* set : available_kernels()) {
    for (const float bad : {std::nanf(""), INFINITY, -INFINITY, 3e38f, 1e19f}) {
      Scaling scaling(*set, 40), other(*set, 40);
      for (std::size_t step = 0; step < 8; ++step) {
        const Floats given = made_up(40, step);
        if (step == 5) {
          Floats spoiled = given;
          spoiled[17] = bad;
          CHECK(scaling.step(spoiled).empty());
          CHECK_EQUAL(scaling.gradient[3], given[3]);
          CHECK_EQUAL(scaling.record.transformed[10], 1.0);
          CHECK_EQUAL(scaling.record.transformed[11], 0.0);
        }
        scaling.step(given);
        other.step(given);
      }
      CHECK_EQUAL(scaling.gradient, other.gradient);
      CHECK_EQUAL(scaling.steps, 8);
    }
  }
}

TEST(gradients_of_either_sign_and_any_sound_size_keep_the_moments_finite) {
  for (const Kernels* set : available_kernels()) {
    Scaling scaling(*set, 3);
    for (std::size_t step = 0; step < 6; ++step) {
      const float sign = step % 2 == 0 ? 1.0f : -1.0f;
      scaling.step({sign * 9.9e17f, sign * 1e-30f, 0.0f});
      for (const Floats* all : {&scaling.gradient, &scaling.mean, &scaling.variance}) {
        for (const float one : *all) CHECK(std::isfinite(one));
      }
    }
  }
}

TEST(transforms_give_the_same_bits_for_any_number_of_threads) {
  constexpr std::size_t kSize = 100'011;
  Scaling alone(kernels(), kSize), together(kernels(), kSize);
  for (std::size_t step = 0; step < 5; ++step) {
    const Floats given = made_up(kSize, step);
    CHECK_EQUAL(alone.step(given), together.step(given, 3));
    CHECK_EQUAL(alone.gradient, together.gradient);
  }
  CHECK_EQUAL(alone.variance, together.variance);
  CHECK_EQUAL(alone.record.transformed, together.record.transformed);
}

TEST(instructions_agree_on_variance_scaling) {
  check_same_bits([](const Kernels& set) {
    Floats all;
    for (const std::size_t size : {1, 7, 8, 15, 16, 17, 100, 5003}) {
      Scaling scaling(set, size);
      for (std::size_t step = 0; step < 4; ++step) {
        scaling.step(made_up(size, step));
        all.insert(all.end(), scaling.gradient.begin(), scaling.gradient.end());
      }
      all.insert(all.end(), scaling.variance.begin(), scaling.variance.end());
      for (const double measured : scaling.record.transformed) all.push_back(static_cast<float>(measured));
    }
    return all;
  });
}

}  // namespace
}  // namespace surefoot
