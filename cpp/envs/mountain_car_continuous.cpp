// MountainCarContinuous-v0: rock a car out of a valley with as little force as possible.
#include <cmath>

#include "surefoot/env.hpp"
#include "surefoot/numpy_math.hpp"

namespace surefoot {
namespace {

constexpr double kMinPosition = -1.2, kMaxPosition = 0.6, kMaxSpeed = 0.07, kGoalPosition = 0.45;
constexpr double kPower = 0.0015, kGravity = 0.0025;

/// Gymnasium keeps the state of a reset in float64 and every later one in float32, and computes in its precision.
class MountainCarContinuous final : public Cloned<MountainCarContinuous> {
 public:
  explicit MountainCarContinuous(const Options& options) : goal_velocity_(options.number("goal_velocity", 0.0)) {}

  std::vector<ObsPart> obs_parts() const override {
    return {{"", {2}, {{kMinPosition, -kMaxSpeed}, {kMaxPosition, kMaxSpeed}}}};
  }
  ActionSpace action_space() const override { return ActionSpace::box({1}, Bounds::within({1.0})); }

  void reset(Generator& random) override {
    position_ = random.uniform(-0.6, -0.4);
    velocity_ = 0.0;
    is_fresh_ = true;
  }

  Outcome step(const Action& action) override {
    const float force = action.values[0];
    const bool terminated = is_fresh_ ? move<double>(force) : move<float>(force);
    is_fresh_ = false;
    return {(terminated ? 100.0 : 0.0) - numpy_square<double>(force) * 0.1, terminated};
  }

  void observe(double* obs) const override {
    obs[0] = position_;
    obs[1] = velocity_;
  }

  std::size_t state_size() const override { return 3; }
  void save(double* state) const override {
    observe(state);
    state[2] = is_fresh_;
  }
  void load(StateReader& state) override {
    // As float32, the bounds lie a little farther out.
    const auto rounded = [](double bound) { return static_cast<double>(static_cast<float>(bound)); };
    position_ = state.number("position", rounded(kMinPosition), rounded(kMaxPosition));
    velocity_ = state.number("velocity", rounded(-kMaxSpeed), rounded(kMaxSpeed));
    is_fresh_ = state.flag("is_fresh");
  }

 private:
  /// A force within its bounds is a float32 and so is what is made of it; a bound itself is a Python float.
  static double pushed(float force, double slope) {
    if (force < -1.0f || force > 1.0f) return std::copysign(kPower, force) - slope;
    return force * static_cast<float>(kPower) - static_cast<float>(slope);
  }

  /// One step in the state's own precision; whether the goal was reached.
  template <class Real>
  bool move(float force) {
    auto position = static_cast<Real>(position_), velocity = static_cast<Real>(velocity_);
    const double slope = kGravity * std::cos(static_cast<double>(3 * position));
    velocity += static_cast<Real>(pushed(force, slope));
    // Compared in the state's precision, except for a bound, which stays as exact as it was written.
    double compared = velocity, goal = static_cast<Real>(goal_velocity_);
    const auto hold = [&](double bound) {
      velocity = static_cast<Real>(bound);
      compared = bound;
      goal = goal_velocity_;
    };
    if (velocity > static_cast<Real>(kMaxSpeed)) hold(kMaxSpeed);
    if (velocity < static_cast<Real>(-kMaxSpeed)) hold(-kMaxSpeed);
    position += velocity;
    if (position > static_cast<Real>(kMaxPosition)) position = static_cast<Real>(kMaxPosition);
    if (position < static_cast<Real>(kMinPosition)) position = static_cast<Real>(kMinPosition);
    if (position == static_cast<Real>(kMinPosition) && velocity < 0) hold(0.0);
    position_ = static_cast<float>(position);
    velocity_ = static_cast<float>(velocity);
    return position >= static_cast<Real>(kGoalPosition) && compared >= goal;
  }

  double goal_velocity_;
  double position_ = 0.0, velocity_ = 0.0;
  bool is_fresh_ = true;
};

const Registered kMountainCarContinuous{"MountainCarContinuous-v0", make<MountainCarContinuous>};

}  // namespace
}  // namespace surefoot
