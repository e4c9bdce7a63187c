// Memory for what an engine writes, with not a byte to spare.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "surefoot/engine.hpp"

namespace surefoot {

template <class Number>
bool same_bytes(const std::vector<Number>& one, const std::vector<Number>& other) {
  if (one.size() != other.size()) return false;
  return one.empty() || std::memcmp(one.data(), other.data(), one.size() * sizeof(Number)) == 0;
}

template <class Number>
bool same_bytes(const std::vector<std::vector<Number>>& one, const std::vector<std::vector<Number>>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const auto& a, const auto& b) { return same_bytes(a, b); });
}

/// A contiguous array of bools, which std::vector<bool> is not.
class Flags {
 public:
  explicit Flags(std::size_t count = 0, bool value = false) : bytes_(count, value) {}

  std::size_t size() const { return bytes_.size(); }
  bool* data() { return bytes_.empty() ? nullptr : reinterpret_cast<bool*>(bytes_.data()); }
  const bool* data() const { return const_cast<Flags*>(this)->data(); }
  bool& operator[](std::size_t i) { return data()[i]; }
  bool operator[](std::size_t i) const { return data()[i]; }
  bool operator==(const Flags&) const = default;

 private:
  std::vector<unsigned char> bytes_;
};

template <class Number>
std::vector<Number*> pointers(std::vector<std::vector<Number>>& parts) {
  std::vector<Number*> all;
  for (auto& part : parts) all.push_back(part.data());
  return all;
}

/// Null if there is nothing.
template <class Number>
Number* data_or_null(std::vector<Number>& numbers) {
  return numbers.empty() ? nullptr : numbers.data();
}

/// One step of all rows; observations are one array per part.
struct StepArrays {
  std::vector<std::vector<double>> obs, final_obs;
  std::vector<double> reward;
  Flags terminated, truncated, valid, mask;
  std::vector<float> metrics;

  explicit StepArrays(const Rows& rows)
      : reward(rows.size()),
        terminated(rows.size()),
        truncated(rows.size()),
        valid(rows.size()),
        mask(rows.size() * rows.mask_size()),
        metrics(rows.size() * rows.metrics().size()) {
    for (const std::size_t size : rows.obs_sizes()) obs.emplace_back(rows.size() * size);
    final_obs = obs;
  }

  StepSlot slot() {
    StepSlot slot{pointers(obs), pointers(final_obs), reward.data(), terminated.data(), truncated.data(), mask.data()};
    slot.valid = valid.data();
    slot.metrics = data_or_null(metrics);
    return slot;
  }
};

/// A rollout, and what was found in it.
struct Rollout {
  std::size_t num_steps, num_rows;
  std::vector<std::vector<float>> obs;  // one array per part
  Flags mask;
  std::vector<float> action, log_prob, value, reward, final_value, last_value, metrics, prediction;
  std::vector<std::int64_t> choice, running_length;
  std::vector<double> running_reward;
  Flags terminated, truncated, episode_start, valid;
  std::vector<std::vector<float>> state, stored_state;  // one array per part
  std::vector<std::size_t> state_steps;
  std::vector<std::int64_t> actor, acting, wanted;  // with other policies
  std::vector<OtherPolicy> others;
  RolloutResult result;

  /// `at_steps` are those before which the state is stored.
  Rollout(const Rows& rows, const Policy& policy, std::size_t steps, std::vector<std::size_t> at_steps = {})
      : num_steps(steps),
        num_rows(rows.size()),
        mask(with_next() * rows.mask_size()),
        action(rows.action_space().has_choices() ? 0 : places() * rows.action_size()),
        log_prob(places()),
        value(places()),
        reward(places()),
        final_value(places()),
        last_value(num_rows),
        metrics(places() * rows.metrics().size()),
        choice(rows.action_space().has_choices() ? places() * rows.action_size() : 0),
        running_length(num_rows),
        running_reward(num_rows),
        terminated(places()),
        truncated(places()),
        episode_start(with_next()),
        valid(rows.num_agents() > 1 ? places() : 0),
        state_steps(std::move(at_steps)) {
    for (const std::size_t size : rows.obs_sizes()) obs.emplace_back(with_next() * size);
    for (const std::size_t size : policy.state_sizes()) {
      state.emplace_back(num_rows * size);
      stored_state.emplace_back(state_steps.size() * num_rows * size);
    }
    std::fill_n(episode_start.data(), num_rows, true);
  }

  std::size_t places() const { return num_steps * num_rows; }
  std::size_t with_next() const { return places() + num_rows; }

  /// Begins with what a reset gave.
  void begin(const StepArrays& step) {
    for (std::size_t part = 0; part < obs.size(); ++part) {
      std::copy(step.obs[part].begin(), step.obs[part].end(), obs[part].begin());
    }
    std::copy_n(step.mask.data(), step.mask.size(), mask.data());
  }

  /// Lets another policy act in the rows that want it.
  void add(const OtherPolicy& other, std::vector<std::int64_t> wanted_in_rows) {
    others.push_back(other);
    wanted = std::move(wanted_in_rows);
    acting.resize(num_rows);
    actor.resize(places());
    valid = Flags(places());
  }

  RolloutArrays arrays() {
    RolloutArrays all{};
    all.num_steps = num_steps;
    all.num_rows = num_rows;
    all.obs = pointers(obs);
    all.mask = mask.data();
    all.action = data_or_null(action);
    all.choice = data_or_null(choice);
    all.log_prob = log_prob.data();
    all.value = value.data();
    all.reward = reward.data();
    all.final_value = final_value.data();
    all.terminated = terminated.data();
    all.truncated = truncated.data();
    all.episode_start = episode_start.data();
    all.last_value = last_value.data();
    all.running_reward = running_reward.data();
    all.running_length = running_length.data();
    all.state = pointers(state);
    all.stored_state = pointers(stored_state);
    all.state_steps = state_steps;
    all.valid = valid.data();
    all.metrics = data_or_null(metrics);
    all.prediction = data_or_null(prediction);
    all.actor = data_or_null(actor);
    all.others = others;
    all.acting = data_or_null(acting);
    all.wanted = data_or_null(wanted);
    return all;
  }

  /// One more rollout, from where the last one ended.
  void collect(Engine& engine, const Policy& policy, std::uint64_t first_step) {
    if (first_step > 0) {
      for (auto& part : obs)
        std::copy_n(part.end() - part.size() / (num_steps + 1), part.size() / (num_steps + 1), part.begin());
      std::copy_n(episode_start.data() + places(), num_rows, episode_start.data());
    }
    RolloutKey key{5, first_step, 0, 1, {}, {}, {}};
    for (const std::size_t size : engine.rows().obs_sizes()) {
      key.low.emplace_back(size, -0.1f);
      key.high.emplace_back(size, 0.1f);
      key.with_moments.push_back(true);
    }
    result = engine.collect(policy, arrays(), key, [] { return true; });
  }

  bool same_as(const Rollout& other) const {
    const auto same = [](const auto& one, const auto& another) {
      return one.step == another.step && one.row == another.row && one.total_reward == another.total_reward &&
             one.length == another.length;
    };
    return same_bytes(obs, other.obs) && mask == other.mask && same_bytes(log_prob, other.log_prob) &&
           same_bytes(value, other.value) && same_bytes(reward, other.reward) && same_bytes(state, other.state) &&
           same_bytes(stored_state, other.stored_state) && same_bytes(final_value, other.final_value) &&
           same_bytes(last_value, other.last_value) && same_bytes(action, other.action) &&
           same_bytes(choice, other.choice) && same_bytes(running_length, other.running_length) &&
           same_bytes(running_reward, other.running_reward) && same_bytes(metrics, other.metrics) &&
           terminated == other.terminated && truncated == other.truncated && valid == other.valid &&
           episode_start == other.episode_start && result.out_of_bounds == other.result.out_of_bounds &&
           same_bytes(result.moments[0].mean, other.result.moments[0].mean) &&
           same_bytes(result.moments[0].variance, other.result.moments[0].variance) &&
           std::equal(result.episodes.begin(), result.episodes.end(), other.result.episodes.begin(),
                      other.result.episodes.end(), same);
  }
};

/// The saved states of all envs.
inline std::vector<double> states_of(const Rows& rows) {
  std::vector<double> states(rows.num_envs() * rows.state_size());
  for (std::size_t env = 0; env < rows.num_envs(); ++env) rows.save(env, states.data() + env * rows.state_size());
  return states;
}

/// Seeds that differ from row to row.
inline std::vector<Generator::Words> row_seeds(std::size_t rows) {
  std::vector<Generator::Words> words;
  for (std::uint64_t row = 0; row < rows; ++row) words.push_back({row, 2 * row + 1, 3, 5});
  return words;
}

}  // namespace surefoot
