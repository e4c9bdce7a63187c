// Pendulum-v1: swing a pendulum up and hold it there; PendulumNoVel-v1 hides how fast it turns.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "surefoot/env.hpp"
#include "surefoot/numpy_math.hpp"

namespace surefoot {
namespace {

constexpr double kPi = std::numbers::pi, kMaxSpeed = 8.0, kTau = 0.05;
constexpr float kMaxTorque = 2.0f, kTorqueGain = 3.0f, kTorqueCost = 0.001f;

class Pendulum final : public Cloned<Pendulum> {
 public:
  Pendulum(const Options& options, bool shows_velocity)
      : gravity_gain_(3.0 * options.number("g", 10.0) / 2.0), shows_velocity_(shows_velocity) {}

  std::vector<ObsPart> obs_parts() const override {
    if (!shows_velocity_) return {{"", {2}, Bounds::within({1.0})}};
    return {{"", {3}, Bounds::within({1.0, 1.0, kMaxSpeed})}};
  }
  ActionSpace action_space() const override { return ActionSpace::box({1}, Bounds::within({kMaxTorque})); }

  void reset(Generator& random) override {
    theta_ = random.uniform(-kPi, kPi);
    theta_dot_ = random.uniform(-1.0, 1.0);
  }

  // What is made of the torque alone stays float32, as the action is.
  Outcome step(const Action& action) override {
    const float torque = std::clamp(action.values[0], -kMaxTorque, kMaxTorque);
    const double upright = numpy_remainder(theta_ + kPi, 2 * kPi) - kPi;
    const double cost = numpy_square(upright) + 0.1 * numpy_square(theta_dot_) + kTorqueCost * numpy_square(torque);
    const double faster = theta_dot_ + (gravity_gain_ * std::sin(theta_) + kTorqueGain * torque) * kTau;
    theta_dot_ = std::clamp(faster, -kMaxSpeed, kMaxSpeed);
    theta_ = theta_ + theta_dot_ * kTau;
    return {-cost, false};
  }

  void observe(double* obs) const override {
    obs[0] = std::cos(theta_);
    obs[1] = std::sin(theta_);
    if (shows_velocity_) obs[2] = theta_dot_;
  }

  std::size_t state_size() const override { return 2; }
  void save(double* state) const override {
    state[0] = theta_;
    state[1] = theta_dot_;
  }
  void load(StateReader& state) override {
    theta_ = state.number("angle");
    theta_dot_ = state.number("velocity", -kMaxSpeed, kMaxSpeed);
  }

 private:
  double gravity_gain_;
  bool shows_velocity_;
  double theta_ = 0.0, theta_dot_ = 0.0;
};

const Registered kPendulum{"Pendulum-v1",
                           [](const Options& options) { return std::make_unique<Pendulum>(options, true); }};
const Registered kNoVelocity{"PendulumNoVel-v1",
                             [](const Options& options) { return std::make_unique<Pendulum>(options, false); }};

}  // namespace
}  // namespace surefoot
