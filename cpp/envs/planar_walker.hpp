// Base class of Hopper and Walker2d: move forward in a plane, upright, with a cost on the controls.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "noisy_start.hpp"
#include "numpy_clip.hpp"
#include "surefoot/mujoco_checks.hpp"
#include "surefoot/mujoco_env.hpp"
#include "surefoot/numpy_sum.hpp"

namespace surefoot {

class PlanarWalker : public MujocoEnv {
 public:
  using Range = std::pair<double, double>;

  /// Defaults in which the tasks differ.
  struct Defaults {
    std::string xml_file;
    Range healthy_z, healthy_angle;
  };

  PlanarWalker(const Options& options, const Defaults& defaults)
      : MujocoEnv(options, defaults.xml_file, 4),
        forward_weight_(options.number("forward_reward_weight", 1.0)),
        control_weight_(static_cast<float>(options.number("ctrl_cost_weight", 1e-3))),
        healthy_reward_(options.number("healthy_reward", 1.0)),
        may_terminate_(options.flag("terminate_when_unhealthy", true)),
        healthy_z_(options.range("healthy_z_range", defaults.healthy_z)),
        healthy_angle_(options.range("healthy_angle_range", defaults.healthy_angle)),
        noise_(options, 5e-3),
        skipped_(options.flag("exclude_current_positions_from_observation", true) ? 1 : 0) {
    expect_at_least(model(), 3, 0);
  }

  std::vector<ObsPart> obs_parts() const override { return {{"", {qpos().size() + qvel().size() - skipped_}}}; }

  Outcome step(const Action& action) override {
    const double before = qpos()[0];
    simulate(action.values, false);  // forces between bodies are not used
    const double velocity = (qpos()[0] - before) / dt();
    const bool healthy = is_healthy();
    // Gymnasium's actions are float32, and so is the cost it makes of them.
    const float cost = control_weight_ * sum_of_squares(action.values.data(), action.values.size());
    return {forward_weight_ * velocity + healthy * healthy_reward_ - cost, !healthy && may_terminate_};
  }

  void observe(double* obs) const override {
    obs = std::copy(qpos().begin() + skipped_, qpos().end(), obs);
    for (const double value : qvel()) *obs++ = numpy_clip(value, {-10.0, 10.0});
  }

 protected:
  static bool within(double value, Range range) { return range.first < value && value < range.second; }

  /// Further conditions of a task for a healthy walker.
  virtual bool has_healthy_state() const { return true; }

  void reset_model(Generator& random) override {
    const auto start = noise_.uniform(init_qpos(), random), speed = noise_.uniform(init_qvel(), random);
    set_state(start, speed);
  }

 private:
  bool is_healthy() const {
    return within(qpos()[1], healthy_z_) && within(qpos()[2], healthy_angle_) && has_healthy_state();
  }

  double forward_weight_;
  float control_weight_;
  double healthy_reward_;
  bool may_terminate_;
  Range healthy_z_, healthy_angle_;
  NoisyStart noise_;
  std::ptrdiff_t skipped_;
};

}  // namespace surefoot
