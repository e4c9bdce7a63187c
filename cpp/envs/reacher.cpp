// Reacher-v5: the tip of an arm of two links goes to a target.
#include <algorithm>
#include <cmath>

#include "surefoot/body_offset.hpp"
#include "surefoot/mujoco_checks.hpp"
#include "surefoot/mujoco_env.hpp"
#include "surefoot/numpy_sum.hpp"

namespace surefoot {
namespace {

constexpr double kStartNoise = 0.1, kSpeedNoise = 0.005, kReach = 0.2;
constexpr std::ptrdiff_t kJoints = 2;  // of the arm; the coordinates after them are the target's

class Reacher final : public Cloned<Reacher, MujocoEnv> {
 public:
  explicit Reacher(const Options& options)
      : Cloned(options, "reacher.xml", 2),
        distance_weight_(options.number("reward_dist_weight", 1)),
        control_weight_(static_cast<float>(options.number("reward_control_weight", 1))),
        fingertip_(id_of(mjOBJ_BODY, "fingertip")),
        target_(id_of(mjOBJ_BODY, "target")) {
    expect_coordinates(model(), 4, 4);
  }

  std::vector<ObsPart> obs_parts() const override { return {{"", {10}}}; }

  Outcome step(const Action& action) override {
    simulate(action.values);
    const double distance = -length(body_offset(data(), fingertip_, target_)) * distance_weight_;
    // Gymnasium's actions are float32, and so is the reward it makes of them.
    const float control = -sum_of_squares(action.values.data(), action.values.size()) * control_weight_;
    return {distance + control, false};
  }

  void observe(double* obs) const override {
    const auto angles = qpos().first(kJoints), speeds = qvel().first(kJoints), target = qpos().subspan(kJoints);
    obs = std::transform(angles.begin(), angles.end(), obs, [](double angle) { return std::cos(angle); });
    obs = std::transform(angles.begin(), angles.end(), obs, [](double angle) { return std::sin(angle); });
    obs = std::copy(target.begin(), target.end(), obs);
    obs = std::copy(speeds.begin(), speeds.end(), obs);
    const Offset offset = body_offset(data(), fingertip_, target_);
    std::copy_n(offset.begin(), 2, obs);
  }

 protected:
  void reset_model(Generator& random) override {
    std::vector<double> start(init_qpos().begin(), init_qpos().end()), speed(init_qvel().begin(), init_qvel().end());
    for (double& value : start) value = random.uniform(-kStartNoise, kStartNoise) + value;
    Offset goal{};
    do {
      goal = {random.uniform(-kReach, kReach), random.uniform(-kReach, kReach), 0};
    } while (!(length(goal) < kReach));
    std::copy_n(goal.begin(), 2, start.end() - 2);
    for (double& value : speed) value += random.uniform(-kSpeedNoise, kSpeedNoise);
    std::fill(speed.end() - 2, speed.end(), 0.0);
    set_state(start, speed);
  }

 private:
  double distance_weight_;
  float control_weight_;
  int fingertip_, target_;
};

const Registered kReacher{"Reacher-v5", make<Reacher>};

}  // namespace
}  // namespace surefoot
