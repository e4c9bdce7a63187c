// Humanoid-v5: walk forward on two legs, with arms.
#include "humanoid_task.hpp"

namespace surefoot {
namespace {

class Humanoid final : public Cloned<Humanoid, HumanoidTask> {
 public:
  explicit Humanoid(const Options& options)
      : Cloned(options, "humanoid.xml", "contact_cost", 5e-7),
        forward_weight_(options.number("forward_reward_weight", 1.25)),
        healthy_reward_(options.number("healthy_reward", 5.0)),
        may_terminate_(options.flag("terminate_when_unhealthy", true)),
        healthy_z_(options.range("healthy_z_range", {1.0, 2.0})),
        mass_(numpy_sum<double>(0, bodies(), [this](std::size_t body) { return model().body_mass[body]; })) {}

  Outcome step(const Action& action) override {
    const double before = mass_center_x();
    simulate(action.values);
    const double velocity = (mass_center_x() - before) / dt();
    const double height = qpos()[2];
    const bool healthy = healthy_z_.first < height && height < healthy_z_.second;
    const double cost = control_cost() + force_cost();
    return {forward_weight_ * velocity + healthy * healthy_reward_ - cost, !healthy && may_terminate_};
  }

 private:
  /// Body after body, as numpy sums over the first axis.
  double mass_center_x() const {
    double moment = 0;
    for (std::size_t body = 0; body < bodies(); ++body) moment += model().body_mass[body] * data().xipos[3 * body];
    return moment / mass_;
  }

  double forward_weight_, healthy_reward_;
  bool may_terminate_;
  std::pair<double, double> healthy_z_;
  double mass_;
};

const Registered kHumanoid{"Humanoid-v5", make<Humanoid>};

}  // namespace
}  // namespace surefoot
