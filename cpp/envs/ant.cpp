// Ant-v5: run forward on four legs.
#include <cmath>
#include <utility>

#include "noisy_task.hpp"
#include "surefoot/numpy_math.hpp"
#include "surefoot/numpy_sum.hpp"

namespace surefoot {
namespace {

class Ant final : public Cloned<Ant, NoisyTask> {
 public:
  explicit Ant(const Options& options)
      : Cloned(options, Defaults{"ant.xml", 5, 0.1, 2, SpeedNoise::kNormal}),
        forward_weight_(options.number("forward_reward_weight", 1.0)),
        control_weight_(static_cast<float>(options.number("ctrl_cost_weight", 0.5))),
        contact_weight_(options.number("contact_cost_weight", 5e-4)),
        healthy_reward_(options.number("healthy_reward", 1.0)),
        main_body_(main_body(options)),
        may_terminate_(options.flag("terminate_when_unhealthy", true)),
        healthy_z_(options.range("healthy_z_range", {0.2, 1.0})),
        force_range_(options.range("contact_force_range", {-1.0, 1.0})),
        shows_forces_(options.flag("include_cfrc_ext_in_observation", true)) {
    expect_at_least(model(), 3, 0);
  }

  std::vector<ObsPart> obs_parts() const override {
    // The world, body 0, is not shown.
    return {{"", {num_observed() + (shows_forces_ ? forces().size() - 6 : 0)}}};
  }

  Outcome step(const Action& action) override {
    const double before = main_body_x();
    simulate(action.values);
    const double velocity = (main_body_x() - before) / dt();
    const bool healthy = is_healthy();
    // Gymnasium's actions are float32, and so is the cost it makes of them.
    const float control = control_weight_ * sum_of_squares(action.values.data(), action.values.size());
    const double cost = control + contact_cost();
    return {velocity * forward_weight_ + healthy * healthy_reward_ - cost, !healthy && may_terminate_};
  }

  void observe(double* obs) const override {
    obs = observe_coordinates(obs);
    if (!shows_forces_) return;
    for (const double force : forces().subspan(6)) *obs++ = numpy_clip(force, force_range_);
  }

 private:
  /// The only option that is a body's number or its name.
  int main_body(const Options& options) const {
    std::string name;
    try {
      name = options.text("main_body", "");
    } catch (const std::invalid_argument&) {
    }
    if (!name.empty()) return id_of(mjOBJ_BODY, name);
    const double number = options.number("main_body", 1);
    if (!(number >= 0 && number < model().nbody && number == std::floor(number))) {
      throw std::invalid_argument("option 'main_body' must be the name of a body or a number below " +
                                  std::to_string(model().nbody));
    }
    return static_cast<int>(number);
  }

  double main_body_x() const { return data().xpos[3 * main_body_]; }

  std::span<const double> forces() const { return {data().cfrc_ext, 6 * static_cast<std::size_t>(model().nbody)}; }

  double contact_cost() const {
    const auto squared = [this](std::size_t i) {
      const double force = numpy_clip(forces()[i], force_range_);
      return force * force;
    };
    return contact_weight_ * numpy_sum<double>(0, forces().size(), squared);
  }

  bool is_healthy() const { return healthy_z_.first <= qpos()[2] && qpos()[2] <= healthy_z_.second && is_finite(); }

  double forward_weight_;
  float control_weight_;
  double contact_weight_, healthy_reward_;
  int main_body_;
  bool may_terminate_;
  std::pair<double, double> healthy_z_, force_range_;
  bool shows_forces_;
};

const Registered kAnt{"Ant-v5", make<Ant>};

}  // namespace
}  // namespace surefoot
