// What a task reads of its model by number must be there, also in a model of the user's own.
#pragma once

#include <mujoco/mujoco.h>

#include <stdexcept>
#include <string>

namespace surefoot {

inline void require_positions(const mjModel& model, int count) {
  if (model.nq < count) {
    throw std::invalid_argument("the model has " + std::to_string(model.nq) + " positions (nq), the task reads " +
                                std::to_string(count));
  }
}

inline void require_velocities(const mjModel& model, int count) {
  if (model.nv < count) {
    throw std::invalid_argument("the model has " + std::to_string(model.nv) + " velocities (nv), the task reads " +
                                std::to_string(count));
  }
}

}  // namespace surefoot
