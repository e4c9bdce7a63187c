// MyEnv-v0: hold a point at the origin against a wind, with a push to the left or to the right.
// Build it with `surefoot native build my_env.cpp`; my_env.py is the same in Python, for `surefoot verify ./my_env.so`.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "surefoot/env.hpp"

namespace {

using namespace surefoot;

constexpr double kStep = 0.1, kDrag = 0.05, kFarthest = 2.0;
constexpr std::size_t kTimeLimit = 100;  // steps per episode

class MyEnv final : public Cloned<MyEnv> {
 public:
  // Constructor arguments come from `env.kwargs`, each with its default; unknown ones are rejected.
  explicit MyEnv(const Options& options) : force_(options.number("force", 1.0)) {}

  // The observation and action spaces. Numbers are computed in double and stored as float32.
  std::vector<ObsPart> obs_parts() const override { return {{"", {2}}}; }
  ActionSpace action_space() const override { return ActionSpace::box({1}, Bounds::within({1.0})); }

  // A new episode. All random numbers come from `random`, which draws the same numbers as numpy's generator.
  void reset(Generator& random) override {
    position_ = random.uniform(-1.0, 1.0);
    velocity_ = 0.0;
  }

  // One step: its reward, and whether the episode terminated. The engine applies the time limit.
  Outcome step(const Action& action) override {
    const double push = std::clamp(static_cast<double>(action.values[0]), -1.0, 1.0);
    velocity_ = velocity_ + kStep * (force_ * push + wind_ - kDrag * velocity_);
    position_ = position_ + kStep * velocity_;
    const bool is_lost = std::abs(position_) > kFarthest;
    return {1.0 - std::abs(position_), is_lost};
  }

  void observe(double* obs) const override {
    obs[0] = position_;
    obs[1] = velocity_;
  }

  // Metrics, reported besides the reward: env/distance in the metrics is the mean over an episode.
  std::vector<MetricSpec> metrics() const override { return {{"distance", Summary::kMean}}; }
  void measure(double* values) const override { values[0] = std::abs(position_); }

  // Parameters that can be set between rollouts, for example by a hook: envs.set_parameters({"wind": 0.5}).
  std::vector<ParameterSpec> parameters() const override { return {ParameterSpec::number("wind", 0.0)}; }
  void set_parameter(std::size_t, std::span<const double> value) override {
    if (!std::isfinite(value[0])) throw std::invalid_argument("the wind must be finite");
    wind_ = value[0];
  }

  // The complete state as numbers, for exact resume: everything that a step or a reset changes, except parameters. The
  // reader rejects values that cannot have been saved, because a checkpoint may be damaged.
  std::size_t state_size() const override { return 2; }
  void save(double* state) const override { observe(state); }
  void load(StateReader& state) override {
    position_ = state.number("position", -kFarthest, kFarthest);
    velocity_ = state.number("velocity");
  }

 private:
  double force_, wind_ = 0.0;
  double position_ = 0.0, velocity_ = 0.0;
};

const Registered kMyEnv{"MyEnv-v0", make<MyEnv>, kTimeLimit};

}  // namespace
