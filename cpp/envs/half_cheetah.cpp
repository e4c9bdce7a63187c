// HalfCheetah-v5: run forward on two legs, in a plane.
#include <algorithm>

#include "noisy_start.hpp"
#include "surefoot/mujoco_checks.hpp"
#include "surefoot/mujoco_env.hpp"
#include "surefoot/numpy_sum.hpp"

namespace surefoot {
namespace {

class HalfCheetah final : public Cloned<HalfCheetah, MujocoEnv> {
 public:
  explicit HalfCheetah(const Options& options)
      : Cloned(options, "half_cheetah.xml", 5),
        forward_weight_(options.number("forward_reward_weight", 1.0)),
        control_weight_(static_cast<float>(options.number("ctrl_cost_weight", 0.1))),
        noise_(options, 0.1),
        skipped_(options.flag("exclude_current_positions_from_observation", true) ? 1 : 0) {
    expect_at_least(model(), 1, 0);
  }

  std::vector<ObsPart> obs_parts() const override { return {{"", {qpos().size() + qvel().size() - skipped_}}}; }

  Outcome step(const Action& action) override {
    const double before = qpos()[0];
    simulate(action.values, false);  // forces between bodies are not used
    const double velocity = (qpos()[0] - before) / dt();
    // Gymnasium's actions are float32, and so is the cost it makes of them.
    const float cost = control_weight_ * sum_of_squares(action.values.data(), action.values.size());
    return {forward_weight_ * velocity - cost, false};
  }

  void observe(double* obs) const override {
    std::copy(qvel().begin(), qvel().end(), std::copy(qpos().begin() + skipped_, qpos().end(), obs));
  }

 protected:
  void reset_model(Generator& random) override {
    const auto start = noise_.uniform(init_qpos(), random), speed = noise_.normal(init_qvel(), random);
    set_state(start, speed);
  }

 private:
  double forward_weight_;
  float control_weight_;
  NoisyStart noise_;
  std::ptrdiff_t skipped_;
};

const Registered kHalfCheetah{"HalfCheetah-v5", make<HalfCheetah>};

}  // namespace
}  // namespace surefoot
