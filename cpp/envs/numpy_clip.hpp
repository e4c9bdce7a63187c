// np.clip of one number.
#pragma once

#include <algorithm>
#include <utility>

namespace surefoot {

/// Unlike std::clamp, also for bounds in the wrong order: the upper one wins. What is not a number stays so.
inline double numpy_clip(double value, std::pair<double, double> bounds) {
  return std::min(std::max(value, bounds.first), bounds.second);
}

}  // namespace surefoot
