// RepeatPrevious-v0: name the symbol that was shown some steps ago; see surefoot/envs/tasks/repeat_previous.py.
#include <algorithm>
#include <cmath>

#include "bounded_options.hpp"
#include "surefoot/env.hpp"

namespace surefoot {
namespace {

constexpr int kMostSymbols = 32, kMostDelay = 64, kMostSteps = 1024;

class RepeatPrevious final : public Cloned<RepeatPrevious> {
 public:
  explicit RepeatPrevious(const Options& options)
      : num_symbols_(bounded_count(options, "symbols", 4, 2, kMostSymbols)),
        delay_(bounded_count(options, "delay", 4, 1, kMostDelay)),
        shown_(bounded_count(options, "episode_steps", 64, static_cast<int>(delay_) + 1, kMostSteps)),
        reward_(1.0 / static_cast<double>(shown_.size() - delay_)) {}

  std::vector<ObsPart> obs_parts() const override { return {{"", {num_symbols_ + 1}, {{0.0}, {1.0}}}}; }
  ActionSpace action_space() const override { return ActionSpace::discrete(static_cast<std::int64_t>(num_symbols_)); }

  // All symbols at once: only a reset has the generator, and so a saved state holds the rest of the episode.
  void reset(Generator& random) override {
    for (double& symbol : shown_) symbol = std::floor(random.uniform() * static_cast<double>(num_symbols_));
    time_ = 0;
  }

  Outcome step(const Action& action) override {
    const bool is_right = time_ >= delay_ && static_cast<double>(action.choices[0]) == shown_[time_ - delay_];
    if (time_ < shown_.size()) ++time_;  // steps after the last one change nothing
    return {is_right ? reward_ : 0.0, time_ == shown_.size()};
  }

  void observe(double* obs) const override {
    std::fill_n(obs, num_symbols_, 0.0);
    if (time_ < shown_.size()) obs[static_cast<std::size_t>(shown_[time_])] = 1.0;
    obs[num_symbols_] = static_cast<double>(shown_.size() - time_) / static_cast<double>(shown_.size());
  }

  std::size_t state_size() const override { return shown_.size() + 1; }
  void save(double* state) const override {
    *std::copy(shown_.begin(), shown_.end(), state) = static_cast<double>(time_);
  }
  void load(StateReader& state) override {
    for (double& symbol : shown_) symbol = static_cast<double>(state.count("symbol", num_symbols_ - 1));
    time_ = state.count("time", shown_.size() - 1);
  }

 private:
  std::size_t num_symbols_, delay_;
  std::vector<double> shown_;  // the symbol of every step of the episode
  double reward_;              // for a right answer
  std::size_t time_ = 0;
};

const Registered kRepeatPrevious{"RepeatPrevious-v0", make<RepeatPrevious>};

}  // namespace
}  // namespace surefoot
