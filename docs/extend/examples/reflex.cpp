// Reflex-v0: move a point to a goal. The action is a target; a network inside the env makes forces of it, in every
// substep. Its weights belong to the agent: a hook trains them beside the policy.
#include <algorithm>
#include <memory>
#include <vector>

#include "surefoot/env.hpp"
#include "surefoot/network.hpp"

namespace {

using namespace surefoot;

constexpr double kStep = 0.05, kDrag = 0.5;
constexpr int kSubsteps = 4;

class Reflex final : public Cloned<Reflex> {
 public:
  explicit Reflex(const Options&) {}

  std::vector<ObsPart> obs_parts() const override { return {{"", {3}}}; }
  ActionSpace action_space() const override { return ActionSpace::box({1}, Bounds::within({1.0})); }

  std::vector<ParameterSpec> parameters() const override {
    const std::size_t count = network_->num_values();
    return {ParameterSpec::of_agent("reflex", {count}, std::vector<double>(count))};
  }
  // Called once for all envs: they are copies of this one, and share the network.
  void set_parameter(std::size_t, std::span<const double> value) override { network_->set(value); }

  void reset(Generator& random) override {
    position_ = random.uniform(-1.0, 1.0);
    goal_ = random.uniform(-1.0, 1.0);
    velocity_ = 0.0;
  }

  Outcome step(const Action& action) override {
    const double target = std::clamp(static_cast<double>(action.values[0]), -1.0, 1.0);
    for (int substep = 0; substep < kSubsteps; ++substep) {
      const float felt[] = {static_cast<float>(target - position_), static_cast<float>(velocity_)};
      float force;
      network_->run(1, felt, &force);
      velocity_ = velocity_ + kStep * (static_cast<double>(force) - kDrag * velocity_);
      position_ = position_ + kStep * velocity_;
    }
    const double miss = position_ - goal_;
    return {-miss * miss, false};
  }

  void observe(double* obs) const override {
    obs[0] = position_;
    obs[1] = velocity_;
    obs[2] = goal_;
  }

  std::size_t state_size() const override { return 3; }
  void save(double* state) const override { observe(state); }
  void load(StateReader& state) override {
    position_ = state.number("position");
    velocity_ = state.number("velocity");
    goal_ = state.number("goal", -1.0, 1.0);
  }

 private:
  std::shared_ptr<Network> network_ = std::make_shared<Network>(std::vector<std::size_t>{2, 8, 1});
  double position_ = 0.0, velocity_ = 0.0, goal_ = 0.0;
};

const Registered kReflex{"Reflex-v0", make<Reflex>, 30};

}  // namespace
