// Base class of Humanoid and HumanoidStandup. They observe joints, and inertia, velocity and forces of every body
// except the world; controls and forces have costs.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "noisy_task.hpp"
#include "surefoot/numpy_math.hpp"
#include "surefoot/numpy_sum.hpp"

namespace surefoot {

class HumanoidTask : public NoisyTask {
 public:
  /// `force_cost` begins the names of the options of the cost of forces.
  HumanoidTask(const Options& options, const std::string& xml_file, const std::string& force_cost, double force_weight)
      : NoisyTask(options, {xml_file, 5, 1e-2, 2}),
        control_weight_(options.number("ctrl_cost_weight", 0.1)),
        force_weight_(options.number(force_cost + "_weight", force_weight)),
        force_range_(options.range(force_cost + "_range", {-std::numeric_limits<double>::infinity(), 10.0})),
        inertias_(options.flag("include_cinert_in_observation", true) ? 10 * (bodies() - 1) : 0),
        speeds_(options.flag("include_cvel_in_observation", true) ? 6 * (bodies() - 1) : 0),
        actuators_(options.flag("include_qfrc_actuator_in_observation", true) ? model().nv - kRootVelocities : 0),
        forces_(options.flag("include_cfrc_ext_in_observation", true) ? 6 * (bodies() - 1) : 0) {
    expect_at_least(model(), 3, actuators_ == 0 ? 0 : kRootVelocities);
  }

  std::vector<ObsPart> obs_parts() const override {
    return {{"", {num_observed() + inertias_ + speeds_ + static_cast<std::size_t>(actuators_) + forces_}}};
  }

  void observe(double* obs) const override {
    obs = observe_coordinates(obs);
    obs = std::copy_n(data().cinert + 10, inertias_, obs);
    obs = std::copy_n(data().cvel + 6, speeds_, obs);
    obs = std::copy_n(data().qfrc_actuator + kRootVelocities, actuators_, obs);
    std::copy_n(data().cfrc_ext + 6, forces_, obs);
  }

 protected:
  std::size_t bodies() const { return static_cast<std::size_t>(model().nbody); }

  /// Unlike Ant's, the cost uses the controls of the simulation, which are in double precision.
  double control_cost() const {
    return control_weight_ * sum_of_squares(data().ctrl, static_cast<std::size_t>(model().nu));
  }
  double force_cost() const {
    return numpy_clip(force_weight_ * sum_of_squares(data().cfrc_ext, 6 * bodies()), force_range_);
  }

 private:
  /// The free joint of the torso, which nothing drives.
  static constexpr int kRootVelocities = 6;

  double control_weight_, force_weight_;
  std::pair<double, double> force_range_;
  std::size_t inertias_, speeds_;
  std::ptrdiff_t actuators_;
  std::size_t forces_;
};

}  // namespace surefoot
