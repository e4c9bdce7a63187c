// Duel-v0: two agents rest, charge or strike each other. An agent without health is out; the other plays on alone.
#include <algorithm>
#include <array>
#include <stdexcept>

#include "surefoot/env.hpp"

namespace {

using namespace surefoot;

constexpr std::size_t kAgents = 2, kMaxSteps = 24;
constexpr std::int64_t kRest = 0, kCharge = 1, kStrike = 2;
constexpr double kLeastHealth = 3.0, kMostHealth = 8.0, kMostCharge = 3.0, kTiredness = 0.25;

class Duel final : public Cloned<Duel, Several<>> {
 public:
  explicit Duel(const Options&) {}

  std::size_t num_agents() const override { return kAgents; }
  std::vector<ObsPart> obs_parts() const override { return {{"", {3}, {{0.0}, {kMostHealth, kMostHealth, 3.0}}}}; }
  ActionSpace action_space() const override { return ActionSpace::discrete(3); }
  bool has_mask() const override { return true; }
  std::vector<MetricSpec> metrics() const override { return {{"hits", Summary::kSum}, {"won", Summary::kLast}}; }
  std::vector<ParameterSpec> parameters() const override {
    return {ParameterSpec::number("damage", 1.0), {"handicap", {kAgents}, {0.0, 0.0}}};
  }

  void set_parameter(std::size_t index, std::span<const double> value) override {
    if (index == 1) return static_cast<void>(std::copy(value.begin(), value.end(), handicap_.begin()));
    if (!(value[0] >= 0)) throw std::invalid_argument("damage must be at least 0");
    damage_ = value[0];
  }

  void reset(Generator& random) override {
    for (std::size_t agent = 0; agent < kAgents; ++agent) {
      health_[agent] = random.uniform(kLeastHealth, kMostHealth) - handicap_[agent];
    }
    charge_ = {};
    hits_ = {};
  }

  /// With a handicap of all its health, an agent leaves the other alone from the start.
  bool takes_part(std::size_t agent) const override { return health_[agent] > 0; }

  void step_agents(const Action& actions, Outcome* outcomes) override {
    std::array<bool, kAgents> was_alive{};
    std::array<double, kAgents> lost{};
    for (std::size_t agent = 0; agent < kAgents; ++agent) was_alive[agent] = health_[agent] > 0;
    for (std::size_t agent = 0; agent < kAgents; ++agent) {
      hits_[agent] = 0;
      if (!was_alive[agent]) continue;
      const std::int64_t choice = actions.choices[agent];
      const bool strikes = choice == kStrike && charge_[agent] > 0 && was_alive[1 - agent];
      if (choice == kCharge) charge_[agent] = std::min(charge_[agent] + 1, kMostCharge);
      if (strikes) lost[1 - agent] += damage_ * charge_[agent];
      if (choice == kStrike) charge_[agent] = 0;
      hits_[agent] = strikes;
      lost[agent] += choice == kRest ? 0 : kTiredness;
    }
    for (std::size_t agent = 0; agent < kAgents; ++agent) {
      health_[agent] -= kTiredness;
      health_[agent] -= lost[agent];
      outcomes[agent] = {hits_[agent] - 0.125 * lost[agent], health_[agent] <= 0};
    }
  }

  void observe_agent(std::size_t agent, double* obs) const override {
    obs[0] = std::max(health_[agent], 0.0);
    obs[1] = std::max(health_[1 - agent], 0.0);
    obs[2] = charge_[agent];
  }

  void mask_agent(std::size_t agent, bool* allowed) const override {
    allowed[kRest] = allowed[kCharge] = true;
    allowed[kStrike] = charge_[agent] > 0;
  }

  void measure_agent(std::size_t agent, double* values) const override {
    values[0] = hits_[agent];
    values[1] = health_[agent] > 0 && health_[1 - agent] <= 0;
  }

  std::size_t state_size() const override { return 3 * kAgents; }
  void save(double* state) const override {
    for (const auto* each : {&health_, &charge_, &hits_}) state = std::copy(each->begin(), each->end(), state);
  }
  void load(StateReader& state) override {
    state.numbers("health", health_);
    for (double& charge : charge_) charge = static_cast<double>(state.count("charge", kMostCharge));
    for (double& hit : hits_) hit = state.flag("hits");
  }

 private:
  std::array<double, kAgents> health_{}, charge_{}, hits_{};
  double damage_ = 1.0;
  std::array<double, kAgents> handicap_{};
};

const Registered kDuel{"Duel-v0", make<Duel>, kMaxSteps};

}  // namespace
