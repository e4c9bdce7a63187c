// How far one body is from another, rounded as numpy does it.
#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cmath>

namespace surefoot {

using Offset = std::array<double, 3>;

/// From the frame of body `origin` to that of body `body`; as of the last substep's start, as `xpos` always is.
inline Offset body_offset(const mjData& data, int body, int origin) {
  const mjtNum *one = data.xpos + 3 * body, *other = data.xpos + 3 * origin;
  return {one[0] - other[0], one[1] - other[1], one[2] - other[2]};
}

/// np.linalg.norm of so few numbers that its dot product is a plain loop.
inline double length(const Offset& offset) {
  return std::sqrt(offset[0] * offset[0] + offset[1] * offset[1] + offset[2] * offset[2]);
}

}  // namespace surefoot
