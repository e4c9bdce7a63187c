// Checks when a MuJoCo task is created: ranges that numpy would reject, and models of the wrong shape.
#pragma once

#include <mujoco/mujoco.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "surefoot/options.hpp"

namespace surefoot {

/// Option `reset_noise_scale`: numpy rejects negative ranges and ranges that overflow.
inline double reset_noise_scale(const Options& options, double otherwise) {
  const double scale = options.number("reset_noise_scale", otherwise);
  if (scale >= 0 && std::isfinite(2 * scale)) return scale;
  throw std::invalid_argument("option 'reset_noise_scale' must be a number of at least 0");
}

/// For tasks whose observation has exactly the coordinates of the original model, even with another `xml_file`.
inline void expect_coordinates(const mjModel& model, int positions, int velocities) {
  if (model.nq == positions && model.nv == velocities) return;
  throw std::invalid_argument("the model must have " + std::to_string(positions) + " positions and " +
                              std::to_string(velocities) + " velocities, not " + std::to_string(model.nq) + " and " +
                              std::to_string(model.nv));
}

/// For tasks that read only the first or last coordinates and so accept larger models.
inline void expect_at_least(const mjModel& model, int positions, int velocities) {
  if (model.nq >= positions && model.nv >= velocities) return;
  throw std::invalid_argument("the model must have at least " + std::to_string(positions) + " positions and " +
                              std::to_string(velocities) + " velocities, not " + std::to_string(model.nq) + " and " +
                              std::to_string(model.nv));
}

}  // namespace surefoot
