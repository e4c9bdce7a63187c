#include "surefoot/orthonormal.hpp"

#include <array>
#include <cmath>

namespace surefoot {

namespace {

double dot(std::size_t size, const double* a, const double* b) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < size; ++i) sums[0] += a[i] * b[i];
  double sum = 0;
  for (const double one : sums) sum += one;
  return sum;
}

}  // namespace

void orthonormalize(std::size_t count, std::size_t size, double* vectors) {
  for (std::size_t i = 0; i < count; ++i) {
    double* const vector = vectors + i * size;
    for (std::size_t j = 0; j < i; ++j) {
      const double* const other = vectors + j * size;
      const double along = dot(size, vector, other);
      for (std::size_t k = 0; k < size; ++k) vector[k] -= along * other[k];
    }
    const double length = std::sqrt(dot(size, vector, vector));
    for (std::size_t k = 0; k < size; ++k) vector[k] /= length;
  }
}

}  // namespace surefoot
