// Probe-v0: exercises the engine with every kind of policy; see surefoot/envs/tasks/probe.py.
#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

#include "surefoot/env.hpp"

namespace surefoot {
namespace {

constexpr std::size_t kCues = 5;
constexpr double kLeastFuel = 4.0, kMostFuel = 28.0, kOpenFrom = -0.25;
constexpr std::array<double, kCues> kSlopes{-1.0, -0.5, 0.0, 0.5, 1.0};

double turned(double number) { return 1.0 - 2.0 * (number * number); }

class Probe : public Env {
 public:
  explicit Probe(const Options& options)
      : forbids_below_(options.number("forbids_below", -std::numeric_limits<double>::infinity())) {}

  std::vector<ObsPart> obs_parts() const override {
    return {{"cues", {kCues}, Bounds::within({1.0})},
            {"fuel", {1}, {{-2.0}, {kMostFuel}}},
            {"wheel", {wheel_.size()}, Bounds::within({1.0})}};
  }
  bool has_mask() const override { return true; }

  void reset(Generator& random) override {
    for (double& cue : cues_) cue = random.uniform(-1.0, 1.0);
    for (double& one : wheel_) one = random.uniform(-1.0, 1.0);
    fuel_ = random.uniform(kLeastFuel, kMostFuel);
  }

  Outcome step(const Action& action) override {
    const double reward = pay(action);
    fuel_ -= reward >= 0.0 ? 1.0 : 1.5;
    for (double& cue : cues_) cue = turned(cue);
    for (double& one : wheel_) one = turned(one);
    return {reward, fuel_ <= 0.0};
  }

  void observe(double* obs) const override {
    obs = std::copy(cues_.begin(), cues_.end(), obs);
    *obs++ = fuel_;
    std::copy(wheel_.begin(), wheel_.end(), obs);
  }

  void mask(bool* allowed) const final {
    for (std::size_t choice = 0; choice < kCues; ++choice) allowed[choice] = openness(choice) >= kOpenFrom;
    open_elements(allowed);
    if (fuel_ < forbids_below_) std::fill_n(allowed, kCues, false);
  }

  std::size_t state_size() const override { return kCues + 1 + wheel_.size(); }
  void save(double* state) const override { observe(state); }
  void load(StateReader& state) override {
    state.numbers("cues", cues_, -1.0, 1.0);
    fuel_ = state.number("fuel", 0.0, kMostFuel);
    state.numbers("wheel", wheel_, -1.0, 1.0);
  }

 protected:
  virtual double pay(const Action& action) const = 0;
  /// Makes sure that every element leaves a choice, where one must be made.
  virtual void open_elements(bool* /*allowed*/) const {}

  /// The reward of a choice: its cue, or -1 if it is masked.
  double earned(std::int64_t choice) const {
    bool allowed[kCues];
    mask(allowed);
    const bool exists = choice >= 0 && choice < static_cast<std::int64_t>(kCues);
    return exists && allowed[choice] ? cues_[choice] : -1.0;
  }

  double openness(std::size_t choice) const { return wheel_[0] + wheel_[1] * kSlopes[choice]; }

  /// Allows the choice of [begin, end) that is nearest to open, so that an element never has all choices masked.
  void open_one(std::size_t begin, std::size_t end, bool* allowed) const {
    std::size_t most = begin;
    for (std::size_t choice = begin; choice < end; ++choice) {
      if (openness(choice) > openness(most)) most = choice;
    }
    allowed[most] = true;
  }

  std::array<double, kCues> cues_{};
  std::array<double, 2> wheel_{};
  double fuel_ = 0.0, forbids_below_;
};

class DiscreteProbe final : public Cloned<DiscreteProbe, Probe> {
 public:
  using Cloned::Cloned;
  ActionSpace action_space() const override { return ActionSpace::discrete(kCues, 3); }

 protected:
  void open_elements(bool* allowed) const override { open_one(0, kCues, allowed); }
  double pay(const Action& action) const override { return earned(action.choices[0] - 3); }
};

class MultiDiscreteProbe final : public Cloned<MultiDiscreteProbe, Probe> {
 public:
  using Cloned::Cloned;
  ActionSpace action_space() const override { return ActionSpace::multi_discrete({3, 2}, {1, -2}); }

 protected:
  void open_elements(bool* allowed) const override {
    open_one(0, 3, allowed);
    open_one(3, kCues, allowed);
  }
  double pay(const Action& action) const override {
    return earned(action.choices[0] - 1) + earned(3 + action.choices[1] + 2);
  }
};

class MultiBinaryProbe final : public Cloned<MultiBinaryProbe, Probe> {
 public:
  using Cloned::Cloned;
  ActionSpace action_space() const override { return ActionSpace::multi_binary(kCues); }

 protected:
  double pay(const Action& action) const override {
    double sum = 0.0;
    for (std::size_t choice = 0; choice < kCues; ++choice) {
      if (action.choices[choice] != 0) sum += earned(static_cast<std::int64_t>(choice));
    }
    return sum;
  }
};

class BoxProbe final : public Cloned<BoxProbe, Probe> {
 public:
  using Cloned::Cloned;
  ActionSpace action_space() const override { return ActionSpace::box({2}, {{-1.0, -2.0}, {1.0, 3.0}}); }
  bool has_mask() const override { return false; }

 protected:
  double pay(const Action& action) const override {
    const double first = action.values[0] - cues_[0], second = action.values[1] - cues_[1];
    return 1.0 - (first * first + second * second);
  }
};

std::unique_ptr<Env> make_probe(const Options& options) {
  const std::string kind = options.text("action", "discrete");
  if (kind == "discrete") return std::make_unique<DiscreteProbe>(options);
  if (kind == "multi_discrete") return std::make_unique<MultiDiscreteProbe>(options);
  if (kind == "multi_binary") return std::make_unique<MultiBinaryProbe>(options);
  if (kind == "box") return std::make_unique<BoxProbe>(options);
  throw std::invalid_argument("option 'action' must be discrete, multi_discrete, multi_binary or box, not '" + kind +
                              "'");
}

const Registered kProbe{"Probe-v0", make_probe};

}  // namespace
}  // namespace surefoot
