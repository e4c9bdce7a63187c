// The logarithm of the gamma function and its first two derivatives, in float64.
#pragma once

#include <cmath>

namespace surefoot {

struct Gammas {
  double log_gamma, digamma, trigamma;
};

/// For x > 0: shifts x to where Stirling's series has more than twelve digits. One function computes all three, because
/// they share their terms.
inline Gammas gammas(double x) {
  double product = 1, shifts = 0, squared_shifts = 0;
  for (; x < 8; x += 1) {
    const double inverse = 1 / x;
    product *= x;
    shifts += inverse;
    squared_shifts += inverse * inverse;
  }
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  const double log_x = std::log(x), inverse = 1 / x, z = inverse * inverse;
  // Bernoulli numbers B2 to B14 over 2n (2n - 1), 2n and 1.
  const double log_tail =
      1.0 / 12 -
      z * (1.0 / 360 - z * (1.0 / 1260 - z * (1.0 / 1680 - z * (1.0 / 1188 - z * (691.0 / 360360 - z / 156)))));
  const double first_tail =
      1.0 / 12 - z * (1.0 / 120 - z * (1.0 / 252 - z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z / 12)))));
  const double second_tail =
      1.0 / 6 - z * (1.0 / 30 - z * (1.0 / 42 - z * (1.0 / 30 - z * (5.0 / 66 - z * (691.0 / 2730 - z * (7.0 / 6))))));
  return {.log_gamma = (x - 0.5) * log_x - x + kHalfLogTwoPi + inverse * log_tail - std::log(product),
          .digamma = log_x - 0.5 * inverse - z * first_tail - shifts,
          .trigamma = inverse + 0.5 * z + inverse * z * second_tail + squared_shifts};
}

}  // namespace surefoot
