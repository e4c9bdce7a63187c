// The offset between two bodies, rounded as numpy rounds it.
#pragma once

#include <mujoco/mujoco.h>

#include <array>
#include <cmath>

namespace surefoot {

using Offset = std::array<double, 3>;

/// The vector from the frame of body `origin` to that of body `body`; like `xpos`, as of the start of the last substep.
inline Offset body_offset(const mjData& data, int body, int origin) {
  const mjtNum *one = data.xpos + 3 * body, *other = data.xpos + 3 * origin;
  return {one[0] - other[0], one[1] - other[1], one[2] - other[2]};
}

/// np.linalg.norm of three numbers, few enough that numpy computes the dot product in a plain loop.
inline double length(const Offset& offset) {
  return std::sqrt(offset[0] * offset[0] + offset[1] * offset[1] + offset[2] * offset[2]);
}

}  // namespace surefoot
