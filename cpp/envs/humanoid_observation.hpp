// The observation of Humanoid and HumanoidStandup: joints, and inertia, velocity and forces of every body except the
// world.
#pragma once

#include <mujoco/mujoco.h>

#include <algorithm>
#include <cstddef>

#include "surefoot/mujoco_checks.hpp"
#include "surefoot/options.hpp"

namespace surefoot {

class HumanoidObservation {
 public:
  HumanoidObservation(const Options& options, const mjModel& model)
      : skipped_(options.flag("exclude_current_positions_from_observation", true) ? 2 : 0),
        positions_(model.nq),
        velocities_(model.nv),
        inertias_(options.flag("include_cinert_in_observation", true) ? 10 * (model.nbody - 1) : 0),
        speeds_(options.flag("include_cvel_in_observation", true) ? 6 * (model.nbody - 1) : 0),
        actuators_(options.flag("include_qfrc_actuator_in_observation", true) ? model.nv - kRootVelocities : 0),
        forces_(options.flag("include_cfrc_ext_in_observation", true) ? 6 * (model.nbody - 1) : 0) {
    expect_at_least(model, 3, actuators_ == 0 ? 0 : kRootVelocities);
  }

  std::size_t size() const {
    return static_cast<std::size_t>(positions_ - skipped_ + velocities_ + inertias_ + speeds_ + actuators_ + forces_);
  }

  void write(const mjData& data, double* obs) const {
    obs = std::copy(data.qpos + skipped_, data.qpos + positions_, obs);
    obs = std::copy_n(data.qvel, velocities_, obs);
    obs = std::copy_n(data.cinert + 10, inertias_, obs);
    obs = std::copy_n(data.cvel + 6, speeds_, obs);
    obs = std::copy_n(data.qfrc_actuator + kRootVelocities, actuators_, obs);
    std::copy_n(data.cfrc_ext + 6, forces_, obs);
  }

 private:
  /// The free joint of the torso, which nothing drives.
  static constexpr int kRootVelocities = 6;

  std::ptrdiff_t skipped_, positions_, velocities_, inertias_, speeds_, actuators_, forces_;
};

}  // namespace surefoot
