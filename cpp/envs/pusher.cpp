// Pusher-v5: an arm of seven joints pushes a cylinder to a goal.
#include <algorithm>

#include "surefoot/body_offset.hpp"
#include "surefoot/mujoco_checks.hpp"
#include "surefoot/mujoco_env.hpp"
#include "surefoot/numpy_sum.hpp"

namespace surefoot {
namespace {

constexpr double kSpeedNoise = 0.005, kNearestStart = 0.17;
constexpr int kJoints =
    7;  // the observation's; the last four coordinates of the model are the cylinder's and the goal's

class Pusher final : public Cloned<Pusher, MujocoEnv> {
 public:
  explicit Pusher(const Options& options)
      : Cloned(options, "pusher_v5.xml", 5),
        near_weight_(options.number("reward_near_weight", 0.5)),
        distance_weight_(options.number("reward_dist_weight", 1)),
        control_weight_(static_cast<float>(options.number("reward_control_weight", 0.1))),
        tip_(id_of(mjOBJ_BODY, "tips_arm")),
        object_(id_of(mjOBJ_BODY, "object")),
        goal_(id_of(mjOBJ_BODY, "goal")) {
    expect_at_least(model(), kJoints, kJoints);
  }

  std::vector<ObsPart> obs_parts() const override { return {{"", {2 * kJoints + 3 * 3}}}; }

  Outcome step(const Action& action) override {
    simulate(action.values);
    const double near = -length(body_offset(data(), object_, tip_)) * near_weight_;
    const double distance = -length(body_offset(data(), object_, goal_)) * distance_weight_;
    // Gymnasium's actions are float32, and so is the reward it makes of them.
    const float control = -sum_of_squares(action.values.data(), action.values.size()) * control_weight_;
    return {distance + control + near, false};
  }

  void observe(double* obs) const override {
    obs = std::copy_n(qpos().begin(), kJoints, obs);
    obs = std::copy_n(qvel().begin(), kJoints, obs);
    for (const int body : {tip_, object_, goal_}) obs = std::copy_n(data().xpos + 3 * body, 3, obs);
  }

 protected:
  void reset_model(Generator& random) override {
    std::vector<double> start(init_qpos().begin(), init_qpos().end()), speed(init_qvel().begin(), init_qvel().end());
    Offset cylinder{};  // from the goal, in the plane
    do {
      cylinder = {random.uniform(-0.3, 0), random.uniform(-0.2, 0.2), 0};
    } while (!(length(cylinder) > kNearestStart));
    std::copy_n(cylinder.begin(), 2, start.end() - 4);
    std::fill(start.end() - 2, start.end(), 0.0);
    for (double& value : speed) value += random.uniform(-kSpeedNoise, kSpeedNoise);
    std::fill(speed.end() - 4, speed.end(), 0.0);
    set_state(start, speed);
  }

 private:
  double near_weight_, distance_weight_;
  float control_weight_;
  int tip_, object_, goal_;
};

const Registered kPusher{"Pusher-v5", make<Pusher>};

}  // namespace
}  // namespace surefoot
