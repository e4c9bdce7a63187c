// The number of threads to use for a pass of the learner.
#pragma once

#include <cstddef>

namespace surefoot {

/// One thread per this many multiply-adds, which take about twenty microseconds.
inline std::size_t threads_worth(std::size_t multiply_adds) { return multiply_adds / 1'000'000 + 1; }

}  // namespace surefoot
