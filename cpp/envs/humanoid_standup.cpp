// HumanoidStandup-v5: get up from lying on the back.
#include <limits>
#include <utility>

#include "humanoid_observation.hpp"
#include "noisy_start.hpp"
#include "numpy_clip.hpp"
#include "surefoot/mujoco_env.hpp"
#include "surefoot/numpy_sum.hpp"

namespace surefoot {
namespace {

class HumanoidStandup final : public Cloned<HumanoidStandup, MujocoEnv> {
 public:
  explicit HumanoidStandup(const Options& options)
      : Cloned(options, "humanoidstandup.xml", 5),
        control_weight_(options.number("ctrl_cost_weight", 0.1)),
        impact_weight_(options.number("impact_cost_weight", 0.5e-6)),
        impact_range_(options.range("impact_cost_range", {-std::numeric_limits<double>::infinity(), 10.0})),
        noise_(options, 1e-2),
        observation_(options, model()) {
    options.number("uph_cost_weight", 1.0);  // Gymnasium also accepts it without using it
  }

  std::vector<ObsPart> obs_parts() const override { return {{"", {observation_.size()}}}; }

  Outcome step(const Action& action) override {
    simulate(action.values);
    const double upward = qpos()[2] / model().opt.timestep;
    const double control = control_weight_ * sum_of_squares(data().ctrl, static_cast<std::size_t>(model().nu));
    const std::size_t forces = 6 * static_cast<std::size_t>(model().nbody);
    const double impact = numpy_clip(impact_weight_ * sum_of_squares(data().cfrc_ext, forces), impact_range_);
    return {upward - control - impact + 1, false};
  }

  void observe(double* obs) const override { observation_.write(data(), obs); }

 protected:
  void reset_model(Generator& random) override {
    const auto start = noise_.uniform(init_qpos(), random), speed = noise_.uniform(init_qvel(), random);
    set_state(start, speed);
  }

 private:
  double control_weight_, impact_weight_;
  std::pair<double, double> impact_range_;
  NoisyStart noise_;
  HumanoidObservation observation_;
};

const Registered kHumanoidStandup{"HumanoidStandup-v5", make<HumanoidStandup>};

}  // namespace
}  // namespace surefoot
