// RiskyCorridor-v0: a short way with a rare large loss, or a long safe one; see surefoot/envs/tasks/risky_corridor.py.
#include <algorithm>
#include <limits>

#include "bounded_options.hpp"
#include "surefoot/env.hpp"

namespace surefoot {
namespace {

constexpr int kMostLength = 8;
constexpr double kMost = 1e6;
constexpr std::int64_t kTowardRisky = 0;

class RiskyCorridor final : public Cloned<RiskyCorridor> {
 public:
  explicit RiskyCorridor(const Options& options)
      : risky_length_(bounded_count(options, "risky_length", 2, 1, kMostLength)),
        safe_length_(bounded_count(options, "safe_length", 4, 1, kMostLength)),
        risky_gain_(bounded_number(options, "risky_gain", 3.0, -kMost, kMost)),
        safe_gain_(bounded_number(options, "safe_gain", 2.0, -kMost, kMost)),
        loss_(bounded_number(options, "loss", 10.0, 0.0, kMost)),
        loss_probability_(share(options, "loss_probability", 0.04)),
        step_cost_(bounded_number(options, "step_cost", 0.1, 0.0, kMost)),
        cell_(risky_length_) {}

  std::vector<ObsPart> obs_parts() const override { return {{"", {last_cell() + 1}, {{0.0}, {1.0}}}}; }
  ActionSpace action_space() const override { return ActionSpace::discrete(2); }

  void reset(Generator& random) override {
    is_loss_ = random.uniform() < loss_probability_;
    cell_ = risky_length_;
  }

  Outcome step(const Action& action) override {
    if (!is_at_end()) action.choices[0] == kTowardRisky ? --cell_ : ++cell_;
    if (cell_ == 0) return {(is_loss_ ? 0.0 - loss_ : risky_gain_) - step_cost_, true};
    if (cell_ == last_cell()) return {safe_gain_ - step_cost_, true};
    return {0.0 - step_cost_, false};  // never -0.0
  }

  void observe(double* obs) const override {
    std::fill_n(obs, last_cell() + 1, 0.0);
    obs[cell_] = 1.0;
  }

  std::vector<MetricSpec> metrics() const override { return {{"risky", Summary::kLast}}; }
  void measure(double* values) const override {
    values[0] = is_at_end() ? (cell_ == 0 ? 1.0 : 0.0) : std::numeric_limits<double>::quiet_NaN();
  }

  std::size_t state_size() const override { return 2; }
  void save(double* state) const override {
    state[0] = static_cast<double>(cell_);
    state[1] = is_loss_ ? 1.0 : 0.0;
  }
  void load(StateReader& state) override {
    cell_ = state.count("cell", last_cell());
    is_loss_ = state.flag("is_loss");
  }

 private:
  std::size_t last_cell() const { return risky_length_ + safe_length_; }
  bool is_at_end() const { return cell_ == 0 || cell_ == last_cell(); }

  std::size_t risky_length_, safe_length_;
  double risky_gain_, safe_gain_, loss_, loss_probability_, step_cost_;
  std::size_t cell_;  // 0 is the risky end, `last_cell` the safe one
  bool is_loss_ = false;
};

const Registered kRiskyCorridor{"RiskyCorridor-v0", make<RiskyCorridor>};

}  // namespace
}  // namespace surefoot
