#include "surefoot/statistics.hpp"

#include <limits>

namespace surefoot {

void standardize(std::size_t count, const float* numbers, const bool* valid, float* standardized) {
  const Standard standard = standard_of([&](const auto& take) {
    for (std::size_t i = 0; i < count; ++i) {
      if (valid[i]) take(static_cast<double>(numbers[i]));
    }
  });
  for (std::size_t i = 0; i < count; ++i) standardized[i] = (numbers[i] - standard.mean) / standard.scale;
}

Fit fit_of(std::size_t count, const float* values, const float* returns) {
  const auto each = [&](const auto& take) {
    for (std::size_t i = 0; i < count; ++i) take(double{returns[i]}, double{returns[i]} - double{values[i]});
  };
  const auto number = static_cast<double>(count);
  double target_sum = 0, target_squares = 0, error_sum = 0;
  each([&](double target, double error) {
    target_sum += target, target_squares += target * target, error_sum += error;
  });
  const double target_mean = target_sum / number, error_mean = error_sum / number;
  double spread = 0, missed = 0;
  each([&](double target, double error) {
    spread += (target - target_mean) * (target - target_mean);
    missed += (error - error_mean) * (error - error_mean);
  });
  return {spread > 0 ? 1 - missed / spread : std::numeric_limits<double>::quiet_NaN(),
          std::sqrt(missed / number) / std::sqrt(target_squares / number)};
}

}  // namespace surefoot
