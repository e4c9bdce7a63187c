// np.clip of one number.
#pragma once

#include <algorithm>
#include <utility>

namespace surefoot {

/// Unlike std::clamp, it also accepts bounds in the wrong order: the upper one wins. NaN stays NaN.
inline double numpy_clip(double value, std::pair<double, double> bounds) {
  return std::min(std::max(value, bounds.first), bounds.second);
}

}  // namespace surefoot
