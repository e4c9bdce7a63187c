// CartPole-v1: a pole on a cart, pushed left or right; CartPoleNoVel-v1 hides how fast both move.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "surefoot/env.hpp"

namespace surefoot {
namespace {

constexpr double kGravity = 9.8, kCartMass = 1.0, kPoleMass = 0.1, kTotalMass = kPoleMass + kCartMass;
constexpr double kLength = 0.5, kPoleMassLength = kPoleMass * kLength, kForce = 10.0, kTau = 0.02;
constexpr double kMaxX = 2.4, kMaxTheta = 12 * 2 * std::numbers::pi / 360;
constexpr double kFar = 1e6;  // no episode reaches this position or speed
constexpr double kUnbounded = std::numeric_limits<double>::infinity();

class CartPole final : public Cloned<CartPole> {
 public:
  CartPole(const Options& options, bool shows_velocity)
      : sutton_barto_reward_(options.flag("sutton_barto_reward", false)), shows_velocity_(shows_velocity) {}

  std::vector<ObsPart> obs_parts() const override {
    if (!shows_velocity_) return {{"", {2}, Bounds::within({2 * kMaxX, 2 * kMaxTheta})}};
    return {{"", {4}, Bounds::within({2 * kMaxX, kUnbounded, 2 * kMaxTheta, kUnbounded})}};
  }
  ActionSpace action_space() const override { return ActionSpace::discrete(2); }

  void reset(Generator& random) override {
    for (double& value : state_) value = random.uniform(-0.05, 0.05);
  }

  // tour: step
  Outcome step(const Action& action) override {
    auto& [x, x_dot, theta, theta_dot] = state_;
    const double force = action.choices[0] == 1 ? kForce : -kForce;
    const double cosine = std::cos(theta), sine = std::sin(theta);
    const double temp = (force + kPoleMassLength * (theta_dot * theta_dot) * sine) / kTotalMass;
    const double theta_acc =
        (kGravity * sine - cosine * temp) / (kLength * (4.0 / 3.0 - kPoleMass * (cosine * cosine) / kTotalMass));
    const double x_acc = temp - kPoleMassLength * theta_acc * cosine / kTotalMass;
    x = x + kTau * x_dot;
    x_dot = x_dot + kTau * x_acc;
    theta = theta + kTau * theta_dot;
    theta_dot = theta_dot + kTau * theta_acc;
    const bool terminated = x < -kMaxX || x > kMaxX || theta < -kMaxTheta || theta > kMaxTheta;
    if (sutton_barto_reward_) return {terminated ? -1.0 : 0.0, terminated};
    return {1.0, terminated};
  }
  // tour: end

  void observe(double* obs) const override {
    if (shows_velocity_) return save(obs);
    obs[0] = state_[0];
    obs[1] = state_[2];
  }

  std::size_t state_size() const override { return state_.size(); }
  void save(double* state) const override { std::copy(state_.begin(), state_.end(), state); }
  void load(StateReader& state) override { state.numbers("state", state_, -kFar, kFar); }

 private:
  bool sutton_barto_reward_, shows_velocity_;
  std::array<double, 4> state_{};
};

const Registered kCartPole{"CartPole-v1",
                           [](const Options& options) { return std::make_unique<CartPole>(options, true); }};
const Registered kNoVelocity{"CartPoleNoVel-v1",
                             [](const Options& options) { return std::make_unique<CartPole>(options, false); }};

}  // namespace
}  // namespace surefoot
