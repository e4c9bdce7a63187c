#include "surefoot/rollout_block.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace surefoot {

void LeafMoments::merge(double other_count, const double* other_mean, const double* other_variance) {
  const double total = count + other_count;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const double delta = other_mean[i] - mean[i];
    const double spread = delta * delta * (count * other_count / total);
    mean[i] += delta * (other_count / total);
    variance[i] = (variance[i] * count + other_variance[i] * other_count + spread) / total;
  }
  count = total;
}

RolloutBlock::RolloutBlock(Rows& rows, const Policy& policy, const RolloutArrays& arrays, const RolloutKey& key,
                           std::size_t begin, std::size_t end)
    : rows_(rows),
      policy_(policy),
      arrays_(arrays),
      key_(key),
      begin_(begin),
      end_(end),
      observed_(rows.obs_size()),
      measured_(rows.metrics().size()),
      steps_(rows.num_agents()),
      leaves_(rows.obs_parts().size()),
      final_obs_(rows.obs_parts().size()),
      final_state_(arrays.state.size()),
      mean_(rows.obs_parts().size()),
      variance_(rows.obs_parts().size()),
      counts_(end - begin) {
  const std::size_t staged = count() * rows.action_size();
  policy.is_discrete() ? env_choice_.resize(staged) : env_action_.resize(staged);
  for (std::size_t tensor = 0; tensor < arrays.state.size(); ++tensor) {
    state_.push_back(arrays.state[tensor] + begin * policy.state_sizes()[tensor]);
  }
  if (arrays.acting != nullptr) groups_.emplace(rows, policy, arrays, key, begin, end);
}

// tour: advance
void RolloutBlock::advance(std::size_t num_steps, Workspace& workspace) {
  const std::size_t until = std::min(step_ + num_steps, arrays_.num_steps);
  for (; step_ < until && !problem_; ++step_) {
    store_state();
    act(workspace);
    const std::size_t agents = rows_.num_agents(), size = agents * rows_.action_size();
    for (std::size_t env = begin_ / agents; env < end_ / agents && !problem_; ++env) {
      const std::size_t place = (env - begin_ / agents) * size;
      step_env(env, env_choice_.empty() ? Action{{env_action_.data() + place, size}, {}}
                                        : Action{{}, {env_choice_.data() + place, size}});
    }
  }
  if (step_ == arrays_.num_steps && !problem_) {
    value_final_obs(workspace);
    for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
      leaves_[leaf] = arrays_.obs[leaf] + (step_ * arrays_.num_rows + begin_) * rows_.obs_sizes()[leaf];
    }
    const bool* starts = arrays_.episode_start + step_ * arrays_.num_rows + begin_;
    policy_.value(count(), leaves_, {state_, starts}, workspace, arrays_.last_value + begin_);
    for (std::size_t row = begin_; row < end_; ++row) {
      if (acting(row) != 0) arrays_.last_value[row] = 0;
    }
    watch_obs();
  }
}
// tour: end

void RolloutBlock::store_state() {
  for (; next_stored_ < arrays_.state_steps.size() && arrays_.state_steps[next_stored_] == step_; ++next_stored_) {
    for (std::size_t tensor = 0; tensor < state_.size(); ++tensor) {
      const std::size_t size = policy_.state_sizes()[tensor];
      float* to = arrays_.stored_state[tensor] + (next_stored_ * arrays_.num_rows + begin_) * size;
      std::copy_n(state_[tensor], count() * size, to);
    }
  }
}

void RolloutBlock::act(Workspace& workspace) {
  if (groups_) groups_->assign(step_);
  if (!groups_ || groups_->is_learner_alone()) return act_alone(workspace);
  groups_->act(step_, workspace, {env_action_.data(), env_choice_.data()});
}

void RolloutBlock::act_alone(Workspace& workspace) {
  const std::size_t place = step_ * arrays_.num_rows + begin_, size = rows_.action_size();
  for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    leaves_[leaf] = arrays_.obs[leaf] + place * rows_.obs_sizes()[leaf];
  }
  const bool* mask = arrays_.mask == nullptr ? nullptr : arrays_.mask + place * rows_.mask_size();
  const Acted acted{arrays_.action == nullptr ? nullptr : arrays_.action + place * size,
                    arrays_.choice == nullptr ? nullptr : arrays_.choice + place * size,
                    arrays_.log_prob + place,
                    arrays_.value + place,
                    state_,
                    arrays_.prediction == nullptr ? nullptr : arrays_.prediction + place * policy_.prediction_size()};
  policy_.act(count(), leaves_, {state_, arrays_.episode_start + place}, mask,
              {key_.seed, key_.first_step + step_, key_.first_row + begin_, key_.stream}, workspace, acted);
  if (env_choice_.empty()) {
    policy_.head().to_env(count(), acted.action, env_action_.data());
    return;
  }
  policy_.head().choices_to_env(count(), acted.choice, env_choice_.data());
}

// tour: step
void RolloutBlock::step_env(std::size_t env, const Action& actions) {
  const bool is_over = rows_.step(env, actions, steps_.data());
  const std::size_t first = env * steps_.size();
  for (std::size_t agent = 0; agent < steps_.size() && !problem_; ++agent) record(first + agent, steps_[agent]);
  if (problem_) return;
  if (is_over) rows_.reset(env);
  for (std::size_t row = first; row < first + steps_.size(); ++row) store_obs(row, step_ + 1);
}

void RolloutBlock::record(std::size_t row, const RowStep& step) {
  const std::size_t place = step_ * arrays_.num_rows + row;
  arrays_.reward[place] = static_cast<float>(step.reward);
  arrays_.terminated[place] = step.terminated;
  arrays_.truncated[place] = step.truncated;
  arrays_.final_value[place] = 0;
  arrays_.episode_start[place + arrays_.num_rows] = step.ended() || !step.valid;
  const bool is_own = acting(row) == 0;
  if (arrays_.valid != nullptr) arrays_.valid[place] = step.valid && is_own;
  if (arrays_.actor != nullptr) arrays_.actor[place] = step.valid ? acting(row) : -1;
  if (!std::isfinite(arrays_.reward[place])) return report(row, Where::kReward, 0, 0, step.reward);
  if (!measured_.empty()) measure(row, step);
  if (!step.valid || !is_own) return;
  ++num_steps_;
  // The episode tracker adds up the stored rewards.
  arrays_.running_reward[row] += static_cast<double>(arrays_.reward[place]);
  ++arrays_.running_length[row];
  if (!step.ended()) return;
  episodes_.push_back({step_, row, arrays_.running_reward[row], arrays_.running_length[row]});
  arrays_.running_reward[row] = 0;
  arrays_.running_length[row] = 0;
  // Bootstrap from the pre-reset observation: the next one belongs to another episode.
  if (step.truncated && !step.terminated) keep_final_obs(row);
}
// tour: end

void RolloutBlock::measure(std::size_t row, const RowStep& step) {
  std::fill(measured_.begin(), measured_.end(), std::numeric_limits<double>::quiet_NaN());
  if (step.valid) rows_.measure(row, measured_.data());
  float* to = arrays_.metrics + (step_ * arrays_.num_rows + row) * measured_.size();
  for (const double value : measured_) *to++ = static_cast<float>(value);
}

void RolloutBlock::store_obs(std::size_t row, std::size_t step) {
  rows_.observe(row, observed_.data());
  const double* from = observed_.data();
  for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    const std::size_t size = rows_.obs_sizes()[leaf];
    float* to = arrays_.obs[leaf] + (step * arrays_.num_rows + row) * size;
    for (std::size_t i = 0; i < size; ++i) {
      to[i] = static_cast<float>(from[i]);
      if (!std::isfinite(to[i])) report(row, Where::kObservation, leaf, i, from[i]);
    }
    from += size;
  }
  if (arrays_.mask == nullptr) return;
  bool* allowed = arrays_.mask + (step * arrays_.num_rows + row) * rows_.mask_size();
  rows_.mask(row, allowed);
  if (!policy_.head().leaves_a_choice(allowed)) report(row, Where::kMask, 0, 0, 0);
}

void RolloutBlock::keep_final_obs(std::size_t row) {
  rows_.observe_end(row, observed_.data());
  const double* from = observed_.data();
  for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    const std::size_t size = rows_.obs_sizes()[leaf];
    for (std::size_t i = 0; i < size; ++i) {
      const auto number = static_cast<float>(from[i]);
      final_obs_[leaf].push_back(number);
      if (!std::isfinite(number)) report(row, Where::kFinalObservation, leaf, i, from[i]);
    }
    from += size;
  }
  for (std::size_t tensor = 0; tensor < state_.size(); ++tensor) {
    const std::size_t size = policy_.state_sizes()[tensor];
    const float* remembered = arrays_.state[tensor] + row * size;
    final_state_[tensor].insert(final_state_[tensor].end(), remembered, remembered + size);
  }
  open_ends_.emplace_back(step_, row);
}

void RolloutBlock::value_final_obs(Workspace& workspace) {
  if (open_ends_.empty()) return;
  std::vector<float> values(open_ends_.size());
  for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) leaves_[leaf] = final_obs_[leaf].data();
  std::vector<const float*> state;
  for (const auto& tensor : final_state_) state.push_back(tensor.data());
  // These observations belong to the old episodes: none of them starts one.
  policy_.value(open_ends_.size(), leaves_, {state, nullptr}, workspace, values.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    arrays_.final_value[open_ends_[i].first * arrays_.num_rows + open_ends_[i].second] = values[i];
  }
}

bool RolloutBlock::is_valid(std::size_t step, std::size_t row) const {
  return arrays_.valid == nullptr || arrays_.valid[step * arrays_.num_rows + begin_ + row];
}

/// Calls `work(begin, end)` for the ranges of a step's numbers, `size` per row, that are valid.
template <class Work>
void RolloutBlock::each_valid(std::size_t step, std::size_t size, const Work& work) const {
  if (arrays_.valid == nullptr) return work(0, count() * size);
  for (std::size_t row = 0; row < count(); ++row) {
    if (is_valid(step, row)) work(row * size, (row + 1) * size);
  }
}

void RolloutBlock::watch_obs() {
  for (std::size_t step = 0; step < arrays_.num_steps; ++step) {
    each_valid(step, 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t row = begin; row < end; ++row) ++counts_[row];
    });
  }
  for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    if (!key_.low[leaf].empty()) count_out_of_bounds(leaf);
    if (key_.with_moments[leaf]) find_moments(leaf);
  }
}

void RolloutBlock::count_out_of_bounds(std::size_t leaf) {
  const std::size_t size = rows_.obs_sizes()[leaf];
  for (std::size_t step = 0; step < arrays_.num_steps; ++step) {
    const float* obs = arrays_.obs[leaf] + (step * arrays_.num_rows + begin_) * size;
    for (std::size_t row = 0; row < count(); ++row, obs += size) {
      if (!is_valid(step, row)) continue;
      for (std::size_t i = 0; i < size; ++i) {
        out_of_bounds_ += (obs[i] < key_.low[leaf][i]) | (obs[i] > key_.high[leaf][i]);
      }
    }
  }
}

void RolloutBlock::find_moments(std::size_t leaf) {
  const std::size_t size = rows_.obs_sizes()[leaf], width = count() * size;
  const auto at = [&](std::size_t step) { return arrays_.obs[leaf] + (step * arrays_.num_rows + begin_) * size; };
  auto& mean = mean_[leaf];
  auto& variance = variance_[leaf];
  mean.assign(width, 0);
  variance.assign(width, 0);
  for (std::size_t step = 0; step < arrays_.num_steps; ++step) {
    each_valid(step, size, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) mean[i] += static_cast<double>(at(step)[i]);
    });
  }
  for (std::size_t i = 0; i < width; ++i) mean[i] /= std::max(counts_[i / size], 1.0);
  for (std::size_t step = 0; step < arrays_.num_steps; ++step) {
    each_valid(step, size, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const double delta = static_cast<double>(at(step)[i]) - mean[i];
        variance[i] += delta * delta;
      }
    });
  }
  for (std::size_t i = 0; i < width; ++i) variance[i] /= std::max(counts_[i / size], 1.0);
}

void RolloutBlock::report(std::size_t row, Where where, std::size_t leaf, std::size_t index, double value) {
  if (!problem_) problem_ = NonFinite{step_, row, where, leaf, index, value};
}

void RolloutBlock::add_to(RolloutResult& result) const {
  result.episodes.insert(result.episodes.end(), episodes_.begin(), episodes_.end());
  result.num_steps += num_steps_;
  result.out_of_bounds += out_of_bounds_;
  // Report the earliest of all blocks, however the rows are divided into blocks.
  const auto when = [](const NonFinite& problem) { return std::pair(problem.step, problem.row); };
  if (problem_ && (!result.problem || when(*problem_) < when(*result.problem))) result.problem = problem_;
  for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    if (!key_.with_moments[leaf] || mean_[leaf].empty()) continue;
    const std::size_t size = rows_.obs_sizes()[leaf];
    auto& [counts, mean, variance] = result.row_moments[leaf];
    counts.insert(counts.end(), counts_.begin(), counts_.end());
    mean.insert(mean.end(), mean_[leaf].begin(), mean_[leaf].end());
    variance.insert(variance.end(), variance_[leaf].begin(), variance_[leaf].end());
    auto& moments = result.moments[leaf];
    moments.mean.resize(size);
    moments.variance.resize(size);
    for (std::size_t row = 0; row < count(); ++row) {
      if (counts_[row] > 0) moments.merge(counts_[row], &mean_[leaf][row * size], &variance_[leaf][row * size]);
    }
  }
}

}  // namespace surefoot
