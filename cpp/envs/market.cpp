// Market-v0: hold a position in an asset with random or recorded returns; see surefoot/envs/tasks/market.py.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "bounded_options.hpp"
#include "return_process.hpp"
#include "surefoot/env.hpp"

namespace surefoot {
namespace {

constexpr int kMostHorizon = 4096, kMostWindow = 256;
constexpr double kMostPosition = 1e3, kMostCost = 1e3, kLeastEquity = -1e6, kMostPenalty = 1e6;
constexpr double kMostReturn = 1e6, kStartEquity = 1.0;

class Market final : public Cloned<Market> {
 public:
  explicit Market(const Options& options)
      : horizon_(bounded_count(options, "horizon", 128, 1, kMostHorizon)),
        window_(bounded_count(options, "window", 8, 0, kMostWindow)),
        low_(bounded_number(options, "low", -1.0, -kMostPosition, kMostPosition)),
        high_(bounded_number(options, "high", 1.0, -kMostPosition, kMostPosition)),
        turnover_cost_(bounded_number(options, "turnover_cost", 0.0005, 0.0, kMostCost)),
        impact_cost_(bounded_number(options, "impact_cost", 0.0, 0.0, kMostCost)),
        exposure_cost_(bounded_number(options, "exposure_cost", 0.0, 0.0, kMostCost)),
        bankrupt_below_(bounded_number(options, "bankrupt_below", 0.0, kLeastEquity, kStartEquity)),
        bankrupt_penalty_(bounded_number(options, "bankrupt_penalty", 0.0, 0.0, kMostPenalty)) {
    if (!(low_ < high_)) refuse_option("low", "less than option 'high'");
    // Recorded returns come from a file that the reference has read and checked; all copies share them.
    auto recorded = options.numbers("returns");
    if (!recorded) {
      process_.emplace(options);
      drawn_.resize(window_ + horizon_);
      return;
    }
    if (recorded->size() < window_ + horizon_) refuse_option("returns", "at least window + horizon numbers");
    for (const double each : *recorded) {
      if (!(std::abs(each) <= kMostReturn)) refuse_option("returns", "numbers from -1e+06 to 1e+06");
    }
    starts_at_random_ = one_of(options, "start", {"random", "first"}) == "random";
    recorded_ = std::make_shared<const std::vector<double>>(std::move(*recorded));
  }

  std::vector<ObsPart> obs_parts() const override {
    const double infinity = std::numeric_limits<double>::infinity();
    std::vector<double> low(window_, -infinity), high(window_, infinity);
    low.insert(low.end(), {lowest_position(), -infinity, 0.0});
    high.insert(high.end(), {highest_position(), infinity, 1.0});
    return {{"", {window_ + 3}, {low, high}}};
  }
  ActionSpace action_space() const override { return ActionSpace::box({1}, {{low_}, {high_}}); }

  // All returns at once: only a reset has the generator, and so a saved state holds the rest of the episode.
  void reset(Generator& random) override {
    if (process_) process_->draw(random, drawn_);
    if (starts_at_random_) first_ = static_cast<std::size_t>(random.uniform() * static_cast<double>(num_starts()));
    time_ = 0;
    position_ = gain_ = peak_ = drawdown_ = turnover_ = 0.0;
    is_bankrupt_ = false;
  }

  Outcome step(const Action& action) override {
    if (time_ == horizon_) return {0.0, false, true};  // steps after the last one change nothing
    const double target = std::clamp(static_cast<double>(action.values[0]), low_, high_);
    const double change = target - position_;
    turnover_ = std::abs(change);
    const double cost =
        turnover_cost_ * turnover_ + 0.5 * impact_cost_ * (change * change) + 0.5 * exposure_cost_ * (target * target);
    const double reward = target * return_at(window_ + time_) - cost;
    position_ = target;
    gain_ += reward;
    peak_ = std::max(peak_, gain_);
    drawdown_ = std::max(drawdown_, peak_ - gain_);
    ++time_;
    is_bankrupt_ = kStartEquity + gain_ < bankrupt_below_;
    return {reward - penalty(), is_bankrupt_, !is_bankrupt_ && time_ == horizon_};
  }

  void observe(double* obs) const override {
    for (std::size_t back = 0; back < window_; ++back) *obs++ = return_at(time_ + back);
    *obs++ = position_;
    *obs++ = gain_;
    *obs = static_cast<double>(horizon_ - time_) / static_cast<double>(horizon_);
  }

  std::vector<MetricSpec> metrics() const override {
    return {{"win", Summary::kLast},
            {"turnover", Summary::kSum},
            {"bankrupt", Summary::kLast},
            {"max_drawdown", Summary::kLast},
            {"position", Summary::kMean}};
  }
  void measure(double* values) const override {
    values[0] = gain_ - penalty() > 0.0 ? 1.0 : 0.0;
    values[1] = turnover_;
    values[2] = is_bankrupt_ ? 1.0 : 0.0;
    values[3] = drawdown_;
    values[4] = position_;
  }

  Footprint footprint() const override {
    const Footprint own = Cloned::footprint();
    const std::size_t drawn = drawn_.size() * sizeof(double);
    return {own.filled + drawn, own.reserved + drawn};
  }

  std::size_t state_size() const override { return 5 + (recorded_ ? 1 : drawn_.size()); }
  void save(double* state) const override {
    for (const double number : {static_cast<double>(time_), position_, gain_, peak_, drawdown_}) *state++ = number;
    recorded_ ? static_cast<void>(*state = static_cast<double>(first_))
              : static_cast<void>(std::copy(drawn_.begin(), drawn_.end(), state));
  }
  void load(StateReader& state) override {
    time_ = state.count("time", horizon_ - 1);
    position_ = state.number("position", lowest_position(), highest_position());
    gain_ = state.number("gain");
    peak_ = state.number("peak", 0.0);
    drawdown_ = state.number("drawdown", 0.0);
    if (recorded_) {
      first_ = state.count("first", num_starts() - 1);
    } else {
      state.numbers("return", drawn_);
    }
  }

 private:
  /// Of the episode; those before `window_` are history.
  double return_at(std::size_t place) const { return recorded_ ? (*recorded_)[first_ + place] : drawn_[place]; }
  std::size_t num_starts() const { return recorded_->size() - window_ - horizon_ + 1; }
  double penalty() const { return is_bankrupt_ ? bankrupt_penalty_ : 0.0; }
  double lowest_position() const { return std::min(low_, 0.0); }  // an episode begins without a position
  double highest_position() const { return std::max(high_, 0.0); }

  std::size_t horizon_, window_;
  double low_, high_;
  double turnover_cost_, impact_cost_, exposure_cost_, bankrupt_below_, bankrupt_penalty_;
  std::optional<ReturnProcess> process_;  // or `recorded_`
  std::shared_ptr<const std::vector<double>> recorded_;
  bool starts_at_random_ = false;

  std::vector<double> drawn_;
  std::size_t first_ = 0, time_ = 0;
  double position_ = 0.0, gain_ = 0.0, peak_ = 0.0, drawdown_ = 0.0, turnover_ = 0.0;
  bool is_bankrupt_ = false;
};

const Registered kMarket{"Market-v0", make<Market>};

}  // namespace
}  // namespace surefoot
