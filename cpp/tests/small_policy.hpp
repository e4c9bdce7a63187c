// Policies of CartPole's shapes with weights made up, and the arrays that a rollout with them fills.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "made_up.hpp"
#include "surefoot/engine.hpp"

namespace surefoot {

template <class Number>
bool same_bytes(const std::vector<Number>& one, const std::vector<Number>& other) {
  return one.size() == other.size() && std::memcmp(one.data(), other.data(), one.size() * sizeof(Number)) == 0;
}

/// 4 observations, perhaps a memory, 8 hidden units, 2 choices, one value.
struct SmallPolicy {
  Policy policy;

  explicit SmallPolicy(const CellsPlan& memory = {}) : policy(plan(memory)) {
    MadeUp made_up;
    made_up.add_memory(memory, 4);
    made_up.add_linear("trunk", 8, memory.hidden > 0 ? memory.hidden : 4);
    made_up.add_linear("head", 2, 8);
    made_up.add_linear("value", 1, 8);
    policy.sync(made_up.tensors());
  }

  static PolicyPlan plan(const CellsPlan& memory) {
    PolicyPlan plan;
    plan.obs = {{"", 4, "", std::numeric_limits<float>::infinity()}};
    plan.actor = {{{0}}, {{"trunk"}}, memory.part()};
    plan.shares_trunk = true;
    plan.head = categorical("head", 2);
    plan.values = {{scalar("value")}};
    return plan;
  }
};

/// A rollout's own arrays and what was found in it.
struct Rollout {
  std::size_t num_steps, num_rows;
  std::vector<float> obs, log_prob, value, reward, final_value, last_value;
  std::vector<std::int64_t> choice, running_length;
  std::vector<double> running_reward;
  std::unique_ptr<bool[]> terminated, truncated, episode_start;
  std::vector<std::vector<float>> state, stored_state;  // one a part
  std::vector<std::size_t> state_steps;
  RolloutResult result;

  Rollout(Engine& engine, std::size_t steps)
      : num_steps(steps),
        num_rows(engine.rows().size()),
        obs((steps + 1) * num_rows * engine.rows().obs_size()),
        log_prob(steps * num_rows),
        value(steps * num_rows),
        reward(steps * num_rows),
        final_value(steps * num_rows),
        last_value(num_rows),
        choice(steps * num_rows),
        running_length(num_rows),
        running_reward(num_rows),
        terminated(new bool[steps * num_rows]()),
        truncated(new bool[steps * num_rows]()),
        episode_start(new bool[(steps + 1) * num_rows]()) {}

  /// Room for what rows remember, and for what they did before some steps.
  void remember(const Policy& policy, std::vector<std::size_t> steps) {
    for (const std::size_t size : policy.state_sizes()) {
      state.emplace_back(num_rows * size);
      stored_state.emplace_back(steps.size() * num_rows * size);
    }
    state_steps = std::move(steps);
    std::fill_n(episode_start.get(), num_rows, true);
  }

  /// One more rollout, from where the last one ended.
  void collect(Engine& engine, const Policy& policy, std::uint64_t first_step) {
    const std::size_t size = engine.rows().obs_size();
    if (first_step > 0) {
      std::copy_n(obs.data() + num_steps * num_rows * size, num_rows * size, obs.data());
      std::copy_n(episode_start.get() + num_steps * num_rows, num_rows, episode_start.get());
    }
    const RolloutArrays arrays{num_steps,
                               num_rows,
                               {obs.data()},
                               nullptr,
                               nullptr,
                               choice.data(),
                               log_prob.data(),
                               value.data(),
                               reward.data(),
                               final_value.data(),
                               terminated.get(),
                               truncated.get(),
                               episode_start.get(),
                               last_value.data(),
                               running_reward.data(),
                               running_length.data(),
                               pointers(state),
                               pointers(stored_state),
                               state_steps};
    const RolloutKey key{5,     first_step, 0, 1, {std::vector<float>(size, -0.1f)}, {std::vector<float>(size, 0.1f)},
                         {true}};
    result = engine.collect(policy, arrays, key, [] { return true; });
  }

  bool same_as(const Rollout& other) const {
    const std::size_t places = num_steps * num_rows;
    const auto same = [](const auto& one, const auto& another) {
      return one.step == another.step && one.row == another.row && one.total_reward == another.total_reward &&
             one.length == another.length;
    };
    return same_bytes(obs, other.obs) && same_bytes(log_prob, other.log_prob) && same_bytes(value, other.value) &&
           same_bytes(reward, other.reward) &&
           std::equal(state.begin(), state.end(), other.state.begin(), same_bytes<float>) &&
           std::equal(stored_state.begin(), stored_state.end(), other.stored_state.begin(), same_bytes<float>) &&
           same_bytes(final_value, other.final_value) && same_bytes(last_value, other.last_value) &&
           same_bytes(choice, other.choice) && same_bytes(running_length, other.running_length) &&
           same_bytes(running_reward, other.running_reward) &&
           std::equal(terminated.get(), terminated.get() + places, other.terminated.get()) &&
           std::equal(truncated.get(), truncated.get() + places, other.truncated.get()) &&
           std::equal(episode_start.get(), episode_start.get() + places + num_rows, other.episode_start.get()) &&
           result.out_of_bounds == other.result.out_of_bounds &&
           same_bytes(result.moments[0].mean, other.result.moments[0].mean) &&
           same_bytes(result.moments[0].variance, other.result.moments[0].variance) &&
           std::equal(result.episodes.begin(), result.episodes.end(), other.result.episodes.begin(),
                      other.result.episodes.end(), same);
  }

  static std::vector<float*> pointers(std::vector<std::vector<float>>& parts) {
    std::vector<float*> all;
    for (auto& part : parts) all.push_back(part.data());
    return all;
  }
};

}  // namespace surefoot
