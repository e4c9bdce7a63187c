// Humanoid-v5: walk forward on two legs, with arms.
#include <limits>
#include <utility>

#include "humanoid_observation.hpp"
#include "noisy_start.hpp"
#include "numpy_clip.hpp"
#include "surefoot/mujoco_env.hpp"
#include "surefoot/numpy_sum.hpp"

namespace surefoot {
namespace {

class Humanoid final : public Cloned<Humanoid, MujocoEnv> {
 public:
  explicit Humanoid(const Options& options)
      : Cloned(options, "humanoid.xml", 5),
        forward_weight_(options.number("forward_reward_weight", 1.25)),
        control_weight_(options.number("ctrl_cost_weight", 0.1)),
        contact_weight_(options.number("contact_cost_weight", 5e-7)),
        contact_range_(options.range("contact_cost_range", {-std::numeric_limits<double>::infinity(), 10.0})),
        healthy_reward_(options.number("healthy_reward", 5.0)),
        may_terminate_(options.flag("terminate_when_unhealthy", true)),
        healthy_z_(options.range("healthy_z_range", {1.0, 2.0})),
        noise_(options, 1e-2),
        observation_(options, model()),
        mass_(numpy_sum<double>(0, bodies(), [this](std::size_t body) { return model().body_mass[body]; })) {}

  std::vector<ObsPart> obs_parts() const override { return {{"", {observation_.size()}}}; }

  Outcome step(const Action& action) override {
    const double before = mass_center_x();
    simulate(action.values);
    const double velocity = (mass_center_x() - before) / dt();
    const double height = qpos()[2];
    const bool healthy = healthy_z_.first < height && height < healthy_z_.second;
    // Unlike Ant's, the cost uses the controls of the simulation, which are in double precision.
    const double control = control_weight_ * sum_of_squares(data().ctrl, static_cast<std::size_t>(model().nu));
    const double contact = numpy_clip(contact_weight_ * sum_of_squares(data().cfrc_ext, 6 * bodies()), contact_range_);
    const double cost = control + contact;
    return {forward_weight_ * velocity + healthy * healthy_reward_ - cost, !healthy && may_terminate_};
  }

  void observe(double* obs) const override { observation_.write(data(), obs); }

 protected:
  void reset_model(Generator& random) override {
    const auto start = noise_.uniform(init_qpos(), random), speed = noise_.uniform(init_qvel(), random);
    set_state(start, speed);
  }

 private:
  std::size_t bodies() const { return static_cast<std::size_t>(model().nbody); }

  /// Body after body, as numpy sums over the first axis.
  double mass_center_x() const {
    double moment = 0;
    for (std::size_t body = 0; body < bodies(); ++body) moment += model().body_mass[body] * data().xipos[3 * body];
    return moment / mass_;
  }

  double forward_weight_, control_weight_, contact_weight_;
  std::pair<double, double> contact_range_;
  double healthy_reward_;
  bool may_terminate_;
  std::pair<double, double> healthy_z_;
  NoisyStart noise_;
  HumanoidObservation observation_;
  double mass_;
};

const Registered kHumanoid{"Humanoid-v5", make<Humanoid>};

}  // namespace
}  // namespace surefoot
