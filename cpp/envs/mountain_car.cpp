// MountainCar-v0: rock a car out of a valley, pushing left, not at all or right.
#include <algorithm>
#include <cmath>

#include "surefoot/env.hpp"

namespace surefoot {
namespace {

constexpr double kMinPosition = -1.2, kMaxPosition = 0.6, kMaxSpeed = 0.07, kGoalPosition = 0.5;
constexpr double kForce = 0.001, kGravity = 0.0025;

class MountainCar final : public Cloned<MountainCar> {
 public:
  explicit MountainCar(const Options& options) : goal_velocity_(options.number("goal_velocity", 0.0)) {}

  std::vector<ObsPart> obs_parts() const override {
    return {{"", {2}, {{kMinPosition, -kMaxSpeed}, {kMaxPosition, kMaxSpeed}}}};
  }
  ActionSpace action_space() const override { return ActionSpace::discrete(3); }

  void reset(Generator& random) override {
    position_ = random.uniform(-0.6, -0.4);
    velocity_ = 0.0;
  }

  Outcome step(const Action& action) override {
    const auto push = static_cast<double>(action.choices[0] - 1);
    const double faster = velocity_ + (push * kForce + std::cos(3 * position_) * -kGravity);
    velocity_ = std::clamp(faster, -kMaxSpeed, kMaxSpeed);
    position_ = std::clamp(position_ + velocity_, kMinPosition, kMaxPosition);
    if (position_ == kMinPosition && velocity_ < 0.0) velocity_ = 0.0;
    return {-1.0, position_ >= kGoalPosition && velocity_ >= goal_velocity_};
  }

  void observe(double* obs) const override { save(obs); }

  std::size_t state_size() const override { return 2; }
  void save(double* state) const override {
    state[0] = position_;
    state[1] = velocity_;
  }
  void load(StateReader& state) override {
    position_ = state.number("position", kMinPosition, kMaxPosition);
    velocity_ = state.number("velocity", -kMaxSpeed, kMaxSpeed);
  }

 private:
  double goal_velocity_;
  double position_ = 0.0, velocity_ = 0.0;
};

const Registered kMountainCar{"MountainCar-v0", make<MountainCar>};

}  // namespace
}  // namespace surefoot
