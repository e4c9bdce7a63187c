// Base class of HalfCheetah, Swimmer and the planar walkers: move forward in a plane, with a cost on the controls.
#pragma once

#include "noisy_task.hpp"
#include "surefoot/numpy_sum.hpp"

namespace surefoot {

class PlanarRunner : public NoisyTask {
 public:
  PlanarRunner(const Options& options, const Defaults& defaults, double control_weight)
      : NoisyTask(options, defaults),
        forward_weight_(options.number("forward_reward_weight", 1.0)),
        control_weight_(static_cast<float>(options.number("ctrl_cost_weight", control_weight))) {}

  Outcome step(const Action& action) override {
    const double forward = run(action);
    return {forward - control_cost(action), false};
  }

 protected:
  /// Simulates a step; returns the reward for the velocity.
  double run(const Action& action) {
    const double before = qpos()[0];
    simulate(action.values, false);  // forces between bodies are not used
    return forward_weight_ * ((qpos()[0] - before) / dt());
  }

  /// Gymnasium's actions are float32, and so is the cost it makes of them.
  float control_cost(const Action& action) const {
    return control_weight_ * sum_of_squares(action.values.data(), action.values.size());
  }

 private:
  double forward_weight_;
  float control_weight_;
};

}  // namespace surefoot
