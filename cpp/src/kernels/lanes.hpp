// Loops over rows of elements in whole vectors, with a remainder per row.
#pragma once

#include "vector.hpp"

namespace surefoot {
namespace {

#define SUREFOOT_MEMBER __attribute__((always_inline))

struct AllLanes {
  SUREFOOT_MEMBER Vector read(const float* from) const { return load(from); }
  SUREFOOT_MEMBER void write(float* to, Vector values) const { store(to, values); }
};

/// The remainder of a row that does not end with a whole vector.
struct FirstLanes {
  std::size_t count;
  SUREFOOT_MEMBER Vector read(const float* from) const { return gather(from, 1, count, 0.0f); }
  SUREFOOT_MEMBER void write(float* to, Vector values) const { scatter(to, 1, count, values); }
};

/// Calls `work(row, column, lanes)` over all rows of `columns` elements, with as many elements per call as a vector
/// has.
template <class Work>
SUREFOOT_INLINE void over_elements(std::size_t rows, std::size_t columns, const Work& work) {
  const std::size_t whole = columns / kLanes * kLanes;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < whole; column += kLanes) work(row, column, AllLanes{});
    if (whole < columns) work(row, whole, FirstLanes{columns - whole});
  }
}

/// The same over one row: calls `work(i, lanes)`.
template <class Work>
SUREFOOT_INLINE void over_elements(std::size_t count, const Work& work) {
  over_elements(1, count, [&](std::size_t, std::size_t i, auto lanes) SUREFOOT_MEMBER { work(i, lanes); });
}

}  // namespace
}  // namespace surefoot
