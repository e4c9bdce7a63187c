// Acrobot-v1: two links that hang from a bar, driven at the joint between them; swing the tip above a line.
// AcrobotNoVel-v1 hides how fast they turn.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "surefoot/env.hpp"
#include "surefoot/numpy_math.hpp"

namespace surefoot {
namespace {

// All masses, lengths and moments of inertia are 1, and the centers of mass in the middle of the links.
constexpr double kCenter = 0.5, kInertia = 1.0, kGravity = 9.8, kPi = std::numbers::pi, kTau = 0.2;
constexpr double kMaxSpeed1 = 4 * kPi, kMaxSpeed2 = 9 * kPi, kManyTurns = 1000 * kPi;

using State = std::array<double, 4>;  // both angles, both velocities

/// The equations of motion in Sutton and Barto's book.
State derivatives(const State& state, double torque) {
  const auto& [theta1, theta2, speed1, speed2] = state;
  const double cosine2 = std::cos(theta2), sine2 = std::sin(theta2);
  const double d1 = 0.25 + (1.25 + cosine2) + kInertia + kInertia;
  const double d2 = (0.25 + kCenter * cosine2) + kInertia;
  const double phi2 = kCenter * kGravity * std::cos(theta1 + theta2 - kPi / 2);
  const double phi1 = -kCenter * numpy_square(speed2) * sine2 - speed2 * speed1 * sine2 +
                      1.5 * kGravity * std::cos(theta1 - kPi / 2) + phi2;
  const double acceleration2 = (torque + d2 / d1 * phi1 - kCenter * numpy_square(speed1) * sine2 - phi2) /
                               (0.25 + kInertia - numpy_square(d2) / d1);
  const double acceleration1 = -(d2 * acceleration2 + phi1) / d1;
  return {speed1, speed2, acceleration1, acceleration2};
}

State moved(const State& state, double time, const State& slope) {
  State there;
  for (std::size_t i = 0; i < there.size(); ++i) there[i] = state[i] + time * slope[i];
  return there;
}

/// One step of the fourth-order Runge-Kutta method.
State integrated(const State& state, double torque) {
  const State k1 = derivatives(state, torque);
  const State k2 = derivatives(moved(state, kTau / 2, k1), torque);
  const State k3 = derivatives(moved(state, kTau / 2, k2), torque);
  const State k4 = derivatives(moved(state, kTau, k3), torque);
  State slope;
  for (std::size_t i = 0; i < slope.size(); ++i) slope[i] = k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i];
  return moved(state, kTau / 6, slope);
}

double wrapped(double angle) {
  if (!(std::abs(angle) < kManyTurns)) return std::remainder(angle, 2 * kPi);  // turn by turn would never end
  while (angle > kPi) angle -= 2 * kPi;
  while (angle < -kPi) angle += 2 * kPi;
  return angle;
}

class Acrobot final : public Cloned<Acrobot> {
 public:
  explicit Acrobot(bool shows_velocity) : shows_velocity_(shows_velocity) {}

  std::vector<ObsPart> obs_parts() const override {
    std::vector<double> limits(4, 1.0);
    if (shows_velocity_) limits.insert(limits.end(), {kMaxSpeed1, kMaxSpeed2});
    return {{"", {limits.size()}, Bounds::within(limits)}};
  }
  ActionSpace action_space() const override { return ActionSpace::discrete(3); }

  void reset(Generator& random) override {
    for (double& value : state_) value = static_cast<float>(random.uniform(-0.1, 0.1));
    is_fresh_ = true;
  }

  Outcome step(const Action& action) override {
    state_ = integrated(state_, static_cast<double>(action.choices[0] - 1));
    is_fresh_ = false;
    auto& [theta1, theta2, speed1, speed2] = state_;
    theta1 = wrapped(theta1);
    theta2 = wrapped(theta2);
    speed1 = std::clamp(speed1, -kMaxSpeed1, kMaxSpeed1);
    speed2 = std::clamp(speed2, -kMaxSpeed2, kMaxSpeed2);
    const bool terminated = -std::cos(theta1) - std::cos(theta2 + theta1) > 1.0;
    return {terminated ? 0.0 : -1.0, terminated};
  }

  void observe(double* obs) const override {
    for (std::size_t link = 0; link < 2; ++link) {
      // The state of a reset is float32, and numpy has functions of its own for those.
      const double angle = state_[link];
      obs[2 * link] = is_fresh_ ? numpy_cos(static_cast<float>(angle)) : std::cos(angle);
      obs[2 * link + 1] = is_fresh_ ? numpy_sin(static_cast<float>(angle)) : std::sin(angle);
      if (shows_velocity_) obs[4 + link] = state_[2 + link];
    }
  }

  std::size_t state_size() const override { return 5; }
  void save(double* state) const override { *std::copy(state_.begin(), state_.end(), state) = is_fresh_; }
  void load(StateReader& state) override {
    state.numbers("angle", std::span(state_).first(2), -kPi, kPi);
    state_[2] = state.number("velocity[0]", -kMaxSpeed1, kMaxSpeed1);
    state_[3] = state.number("velocity[1]", -kMaxSpeed2, kMaxSpeed2);
    is_fresh_ = state.flag("is_fresh");
  }

 private:
  bool shows_velocity_;
  State state_{};
  bool is_fresh_ = true;
};

const Registered kAcrobot{"Acrobot-v1", [](const Options&) { return std::make_unique<Acrobot>(true); }};
const Registered kNoVelocity{"AcrobotNoVel-v1", [](const Options&) { return std::make_unique<Acrobot>(false); }};

}  // namespace
}  // namespace surefoot
