// Base class of Hopper and Walker2d: move forward in a plane, upright.
#pragma once

#include <string>
#include <utility>

#include "planar_runner.hpp"
#include "surefoot/numpy_math.hpp"

namespace surefoot {

class PlanarWalker : public PlanarRunner {
 public:
  using Range = std::pair<double, double>;

  PlanarWalker(const Options& options, const std::string& xml_file, Range healthy_z, Range healthy_angle)
      : PlanarRunner(options, {xml_file, 4, 5e-3, 1}, 1e-3),
        healthy_reward_(options.number("healthy_reward", 1.0)),
        may_terminate_(options.flag("terminate_when_unhealthy", true)),
        healthy_z_(options.range("healthy_z_range", healthy_z)),
        healthy_angle_(options.range("healthy_angle_range", healthy_angle)) {
    expect_at_least(model(), 3, 0);
  }

  Outcome step(const Action& action) override {
    const double forward = run(action);
    const bool healthy = is_healthy();
    return {forward + healthy * healthy_reward_ - control_cost(action), !healthy && may_terminate_};
  }

  void observe(double* obs) const override {
    obs = std::copy(observed_qpos().begin(), observed_qpos().end(), obs);
    for (const double value : qvel()) *obs++ = numpy_clip(value, {-10.0, 10.0});
  }

 protected:
  static bool within(double value, Range range) { return range.first < value && value < range.second; }

  /// Further conditions of a task for a healthy walker.
  virtual bool has_healthy_state() const { return true; }

 private:
  bool is_healthy() const {
    return within(qpos()[1], healthy_z_) && within(qpos()[2], healthy_angle_) && has_healthy_state();
  }

  double healthy_reward_;
  bool may_terminate_;
  Range healthy_z_, healthy_angle_;
};

}  // namespace surefoot
