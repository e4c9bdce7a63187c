// Swimmer-v5: swim forward by bending, in a plane.
#include <algorithm>

#include "surefoot/mujoco_checks.hpp"
#include "surefoot/mujoco_env.hpp"
#include "surefoot/numpy_sum.hpp"

namespace surefoot {
namespace {

class Swimmer final : public Cloned<Swimmer, MujocoEnv> {
 public:
  explicit Swimmer(const Options& options)
      : Cloned(options, "swimmer.xml", 4),
        forward_weight_(options.number("forward_reward_weight", 1.0)),
        control_weight_(static_cast<float>(options.number("ctrl_cost_weight", 1e-4))),
        noise_(reset_noise_scale(options, 0.1)),
        skipped_(options.flag("exclude_current_positions_from_observation", true) ? 2 : 0) {
    expect_at_least(model(), 2, 2);
  }

  std::vector<ObsPart> obs_parts() const override { return {{"", {qpos().size() + qvel().size() - skipped_}}}; }

  Outcome step(const Action& action) override {
    const double before = qpos()[0];
    simulate(action.values);
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
    std::vector<double> start(init_qpos().begin(), init_qpos().end()), speed(init_qvel().begin(), init_qvel().end());
    for (double& value : start) value += random.uniform(-noise_, noise_);
    for (double& value : speed) value += random.uniform(-noise_, noise_);
    set_state(start, speed);
  }

 private:
  double forward_weight_;
  float control_weight_;
  double noise_;
  std::ptrdiff_t skipped_;
};

const Registered kSwimmer{"Swimmer-v5", make<Swimmer>};

}  // namespace
}  // namespace surefoot
