// Functions that round as numpy does, unlike their obvious counterparts in C++.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

namespace surefoot {

/// `x ** 2` of a numpy scalar: the C library's pow, which sometimes differs from x * x in the last bit.
template <class Real>
Real numpy_square(Real x) {
  volatile Real two = 2;  // volatile: compilers would replace pow(x, 2) by x * x
  return std::pow(x, two);
}

/// `x % y`: the result has the sign of y.
inline double numpy_remainder(double x, double y) {
  const double rest = std::fmod(x, y);
  if (rest == 0.0) return std::copysign(0.0, y);
  return (y < 0.0) != (rest < 0.0) ? rest + y : rest;
}

/// `np.clip`: unlike std::clamp, it also accepts bounds in the wrong order: the upper one wins. NaN stays NaN.
inline double numpy_clip(double value, std::pair<double, double> bounds) {
  return std::min(std::max(value, bounds.first), bounds.second);
}

/// `np.cos` and `np.sin` of a float32 below pi/4: minimax polynomials with fused multiply-adds, as numpy evaluates them
/// where the processor has such instructions.
inline float numpy_cos(float x) {
  const float square = x * x;
  float sum = std::fma(0x1.98e616p-16f, square, -0x1.6c06dcp-10f);
  sum = std::fma(sum, square, 0x1.55553cp-05f);
  sum = std::fma(sum, square, -0x1p-01f);
  return std::fma(sum, square, 1.0f);
}

inline float numpy_sin(float x) {
  const float square = x * x;
  float sum = std::fma(0x1.7d3bbcp-19f, square, -0x1.a06bbap-13f);
  sum = std::fma(sum, square, 0x1.11119ap-07f);
  sum = std::fma(sum, square, -0x1.555556p-03f);
  return std::fma(sum * square, x, x);
}

}  // namespace surefoot
