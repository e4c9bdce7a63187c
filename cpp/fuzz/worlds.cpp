#include "worlds.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace surefoot::fuzz {
namespace {

constexpr const char* kModels[] = {"ant.xml",      "half_cheetah.xml",      "hopper.xml",
                                   "humanoid.xml", "inverted_pendulum.xml", "reacher.xml",
                                   "swimmer.xml",  "walker2d_v5.xml",       "no such model.xml"};
constexpr const char* kNumbers[] = {"contact_cost_weight",
                                    "ctrl_cost_weight",
                                    "forbids_below",
                                    "forward_reward_weight",
                                    "g",
                                    "goal_velocity",
                                    "healthy_reward",
                                    "impact_cost_weight",
                                    "main_body",
                                    "reset_noise_scale",
                                    "reward_control_weight",
                                    "reward_dist_weight",
                                    "reward_near_weight",
                                    "uph_cost_weight",
                                    "symbols",
                                    "delay",
                                    "episode_steps",
                                    "length",
                                    "bump_penalty",
                                    "horizon",
                                    "window",
                                    "low",
                                    "high",
                                    "exposure_cost",
                                    "volatility",
                                    "stress_begins",
                                    "bankrupt_below",
                                    "risky_length",
                                    "loss_probability",
                                    "unknown"};
constexpr const char* kRanges[] = {"contact_cost_range",  "contact_force_range", "healthy_angle_range",
                                   "healthy_state_range", "healthy_z_range",     "impact_cost_range"};
constexpr const char* kFlags[] = {"exclude_current_positions_from_observation",
                                  "include_cfrc_ext_in_observation",
                                  "include_cinert_in_observation",
                                  "include_cvel_in_observation",
                                  "include_qfrc_actuator_in_observation",
                                  "sutton_barto_reward",
                                  "terminate_when_unhealthy"};
constexpr const char* kProbeActions[] = {"discrete", "multi_discrete", "multi_binary", "box", "none"};
constexpr const char* kProcesses[] = {"normal", "student_t", "jump", "none"};

double option_number(Chance& chance) {
  return chance.once_in(2) ? static_cast<double>(chance.between(0, 70)) : chance.odd_number();
}

/// Mostly none: an option that an env does not know is refused at once.
Options random_options(const std::string& id, Chance& chance) {
  std::map<std::string, Option> given{{kAssets, std::string(MUJOCO_ASSETS)}};
  if (id == "Probe-v0") given["action"] = std::string(chance.one_of(kProbeActions));
  if (id == "Market-v0" && chance.once_in(2)) given["process"] = std::string(chance.one_of(kProcesses));
  if (id == "Market-v0" && chance.once_in(4)) given["returns"] = std::vector<double>(chance.between(100, 300), 0.01);
  if (chance.once_in(8)) given["frame_skip"] = static_cast<double>(chance.between(0, 8));
  if (chance.once_in(12)) given["xml_file"] = std::string(chance.one_of(kModels));
  for (std::size_t count = chance.once_in(5) ? chance.between(1, 2) : 0; count > 0; --count) {
    switch (chance.between(0, 3)) {
      case 0:
        given[chance.one_of(kRanges)] = std::vector<double>(chance.between(0, 3), option_number(chance));
        break;
      case 1:
        given[chance.one_of(kFlags)] = chance.once_in(2);
        break;
      default:
        given[chance.one_of(kNumbers)] = option_number(chance);
    }
  }
  return Options(given);
}

}  // namespace

std::unique_ptr<Engine> random_engine(Chance& chance) {
  const std::string id = chance.one_of(env_ids());
  const Endings endings{chance.once_in(2) ? 0 : chance.between(1, 30), chance.once_in(3)};
  auto rows = std::make_unique<Rows>(id, random_options(id, chance), chance.between(1, 5), endings);
  return std::make_unique<Engine>(std::move(rows), chance.between(1, 3));
}

void reset(Engine& engine, Chance& chance, StepArrays& slots) {
  std::vector<Generator::Words> seeds(engine.rows().num_envs());
  for (auto& words : seeds) {
    for (auto& word : words) word = chance.once_in(8) ? 0 : chance.word();
    if (!chance.once_in(50)) words[3] |= 1;
  }
  engine.reset(seeds, slots.slot());
}

Actions::Actions(Engine& engine, Chance& chance, std::size_t steps, bool odd)
    : has_choices(engine.rows().action_space().has_choices()) {
  const ActionSpace& space = engine.rows().action_space();
  const std::size_t count = steps * engine.rows().size() * space.size();
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_odd = odd && chance.once_in(4);
    if (has_choices) {
      const auto [first, last] = space.choices(i % space.size());
      const auto inside =
          first + static_cast<std::int64_t>(chance.word() % static_cast<std::uint64_t>(last - first + 1));
      choices.push_back(is_odd ? static_cast<std::int64_t>(chance.word() >> chance.between(0, 63)) - 2 : inside);
    } else {
      const double huge = chance.once_in(2) ? chance.uniform(-1e38, 1e38) : std::numeric_limits<float>::quiet_NaN();
      values.push_back(static_cast<float>(is_odd ? huge : chance.uniform(-3.0, 3.0)));
    }
  }
}

RowActions Actions::all() const {
  return has_choices ? RowActions{nullptr, choices.data()} : RowActions{values.data(), nullptr};
}

}  // namespace surefoot::fuzz
