// Sums that round as numpy's do; the rewards of Gymnasium's envs depend on them.
#pragma once

#include <cstddef>

namespace surefoot {

/// numpy's pairwise summation of contiguous numbers: a plain loop below 8, eight running sums up to 128, two halves
/// above.
template <class Number, class At>
Number numpy_sum(std::size_t begin, std::size_t count, const At& at) {
  if (count < 8) {
    Number sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += at(begin + i);
    return sum;
  }
  if (count <= 128) {
    Number sums[8];
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] = at(begin + lane);
    std::size_t i = 8;
    for (; i < count - count % 8; i += 8) {
      for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += at(begin + i + lane);
    }
    Number sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; i < count; ++i) sum += at(begin + i);
    return sum;
  }
  std::size_t half = count / 2;
  half -= half % 8;
  return numpy_sum<Number>(begin, half, at) + numpy_sum<Number>(begin + half, count - half, at);
}

/// np.sum(np.square(values)).
template <class Number>
Number sum_of_squares(const Number* values, std::size_t count) {
  return numpy_sum<Number>(0, count, [values](std::size_t i) { return values[i] * values[i]; });
}

}  // namespace surefoot
