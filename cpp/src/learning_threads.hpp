// How many threads a pass of the learner is worth.
#pragma once

#include <cstddef>

namespace surefoot {

/// One for each so many multiply-adds, some twenty microseconds of them.
inline std::size_t threads_worth(std::size_t multiply_adds) { return multiply_adds / 1'000'000 + 1; }

}  // namespace surefoot
