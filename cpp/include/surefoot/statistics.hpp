// Statistics of the values and advantages of a rollout; sums are in float64 and in order.
#pragma once

#include <cmath>
#include <cstddef>

namespace surefoot {

/// What makes numbers zero mean and unit standard deviation: `(number - mean) / scale`.
struct Standard {
  float mean = 0, scale = 1;
};

/// Of the numbers that `each` passes to a function, twice; fewer than two stay as they are.
template <class Each>
Standard standard_of(const Each& each) {
  double sum = 0, squares = 0, count = 0;
  each([&](double one) { sum += one, ++count; });
  if (count < 2) return {};
  const double mean = sum / count;
  each([&](double one) { squares += (one - mean) * (one - mean); });
  return {static_cast<float>(mean), static_cast<float>(std::sqrt(squares / (count - 1))) + 1e-8f};
}

/// Writes the numbers with zero mean and unit standard deviation over those that are valid.
void standardize(std::size_t count, const float* numbers, const bool* valid, float* standardized);

/// How well values predict returns.
struct Fit {
  double explained_variance;  // NaN if the returns are constant
  double error;               // standard deviation of the errors, relative to the root mean square of the returns
};

Fit fit_of(std::size_t count, const float* values, const float* returns);

}  // namespace surefoot
