#include "surefoot/rollout_block.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace surefoot {

void PartMoments::merge(double other_count, const double* other_mean, const double* other_variance) {
  const double total = count + other_count;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const double delta = other_mean[i] - mean[i];
    const double spread = delta * delta * (count * other_count / total);
    mean[i] += delta * (other_count / total);
    variance[i] = (variance[i] * count + other_variance[i] * other_count + spread) / total;
  }
  count = total;
}

RolloutBlock::RolloutBlock(Rows& rows, const Policy& policy, const RolloutMemory& memory, const RolloutKey& key,
                           std::size_t begin, std::size_t end)
    : rows_(rows),
      policy_(policy),
      memory_(memory),
      key_(key),
      begin_(begin),
      end_(end),
      observed_(rows.obs_size()),
      leaves_(rows.obs_parts().size()),
      final_obs_(rows.obs_parts().size()),
      final_state_(memory.state.size()),
      mean_(rows.obs_parts().size()),
      variance_(rows.obs_parts().size()) {
  const std::size_t staged = count() * rows.action_size();
  policy.is_discrete() ? env_choice_.resize(staged) : env_action_.resize(staged);
  for (std::size_t part = 0; part < memory.state.size(); ++part) {
    state_.push_back(memory.state[part] + begin * policy.state_sizes()[part]);
  }
}

void RolloutBlock::advance(std::size_t num_steps, Workspace& workspace) {
  const std::size_t until = std::min(step_ + num_steps, memory_.num_steps);
  for (; step_ < until && !problem_; ++step_) {
    store_state();
    act(workspace);
    const std::size_t size = rows_.action_size();
    for (std::size_t row = begin_; row < end_ && !problem_; ++row) {
      const std::size_t place = (row - begin_) * size;
      step_row(row, env_choice_.empty() ? Action{{env_action_.data() + place, size}, {}}
                                        : Action{{}, {env_choice_.data() + place, size}});
    }
  }
  if (step_ == memory_.num_steps && !problem_) {
    value_final_obs(workspace);
    for (std::size_t part = 0; part < leaves_.size(); ++part) {
      leaves_[part] = memory_.obs[part] + (step_ * memory_.num_rows + begin_) * rows_.obs_parts()[part].size;
    }
    const bool* starts = memory_.episode_start + step_ * memory_.num_rows + begin_;
    policy_.value(count(), leaves_, {state_, starts}, workspace, memory_.last_value + begin_);
    watch_obs();
  }
}

void RolloutBlock::store_state() {
  for (; next_stored_ < memory_.state_steps.size() && memory_.state_steps[next_stored_] == step_; ++next_stored_) {
    for (std::size_t part = 0; part < state_.size(); ++part) {
      const std::size_t size = policy_.state_sizes()[part];
      float* to = memory_.stored_state[part] + (next_stored_ * memory_.num_rows + begin_) * size;
      std::copy_n(state_[part], count() * size, to);
    }
  }
}

void RolloutBlock::act(Workspace& workspace) {
  const std::size_t place = step_ * memory_.num_rows + begin_, size = rows_.action_size();
  for (std::size_t part = 0; part < leaves_.size(); ++part) {
    leaves_[part] = memory_.obs[part] + place * rows_.obs_parts()[part].size;
  }
  const bool* mask = memory_.mask == nullptr ? nullptr : memory_.mask + place * rows_.mask_size();
  const Acted acted{memory_.action == nullptr ? nullptr : memory_.action + place * size,
                    memory_.choice == nullptr ? nullptr : memory_.choice + place * size, memory_.log_prob + place,
                    memory_.value + place, state_};
  policy_.act(count(), leaves_, {state_, memory_.episode_start + place}, mask,
              {key_.seed, key_.first_step + step_, begin_, key_.stream}, workspace, acted);
  if (env_choice_.empty()) {
    policy_.head().to_env(count(), acted.action, env_action_.data());
    return;
  }
  policy_.head().choices_to_env(count(), acted.choice, env_choice_.data());
}

void RolloutBlock::step_row(std::size_t row, const Action& action) {
  const std::size_t place = step_ * memory_.num_rows + row, following = place + memory_.num_rows;
  const RowStep step = rows_.step(row, action);
  memory_.reward[place] = static_cast<float>(step.reward);
  memory_.terminated[place] = step.terminated;
  memory_.truncated[place] = step.truncated;
  memory_.final_value[place] = 0;
  memory_.episode_start[following] = step.ended();
  if (!std::isfinite(memory_.reward[place])) return report(row, Where::kReward, 0, 0, step.reward);
  // The tracker of episodes adds up the rewards that were stored.
  memory_.running_reward[row] += static_cast<double>(memory_.reward[place]);
  ++memory_.running_length[row];
  if (step.ended()) {
    episodes_.push_back({step_, row, memory_.running_reward[row], memory_.running_length[row]});
    memory_.running_reward[row] = 0;
    memory_.running_length[row] = 0;
    // Bootstrap from the pre-reset observation: what is observed next belongs to another episode.
    if (step.truncated && !step.terminated) keep_final_obs(row);
    rows_.reset(row);
  }
  store_obs(row, step_ + 1);
  if (memory_.mask == nullptr) return;
  bool* allowed = memory_.mask + following * rows_.mask_size();
  rows_.mask(row, allowed);
  if (!policy_.head().leaves_a_choice(allowed)) report(row, Where::kMask, 0, 0, 0);
}

void RolloutBlock::store_obs(std::size_t row, std::size_t step) {
  rows_.observe(row, observed_.data());
  const double* from = observed_.data();
  for (std::size_t part = 0; part < leaves_.size(); ++part) {
    const std::size_t size = rows_.obs_parts()[part].size;
    float* to = memory_.obs[part] + (step * memory_.num_rows + row) * size;
    for (std::size_t i = 0; i < size; ++i) {
      to[i] = static_cast<float>(from[i]);
      if (!std::isfinite(to[i])) report(row, Where::kObservation, part, i, from[i]);
    }
    from += size;
  }
}

void RolloutBlock::keep_final_obs(std::size_t row) {
  rows_.observe(row, observed_.data());
  const double* from = observed_.data();
  for (std::size_t part = 0; part < leaves_.size(); ++part) {
    const std::size_t size = rows_.obs_parts()[part].size;
    for (std::size_t i = 0; i < size; ++i) {
      const auto number = static_cast<float>(from[i]);
      final_obs_[part].push_back(number);
      if (!std::isfinite(number)) report(row, Where::kFinalObservation, part, i, from[i]);
    }
    from += size;
  }
  for (std::size_t part = 0; part < state_.size(); ++part) {
    const std::size_t size = policy_.state_sizes()[part];
    const float* remembered = memory_.state[part] + row * size;
    final_state_[part].insert(final_state_[part].end(), remembered, remembered + size);
  }
  open_ends_.emplace_back(step_, row);
}

void RolloutBlock::value_final_obs(Workspace& workspace) {
  if (open_ends_.empty()) return;
  std::vector<float> values(open_ends_.size());
  for (std::size_t part = 0; part < leaves_.size(); ++part) leaves_[part] = final_obs_[part].data();
  std::vector<const float*> state;
  for (const auto& part : final_state_) state.push_back(part.data());
  // These observations belong to the old episodes: none of them is a start.
  policy_.value(open_ends_.size(), leaves_, {state, nullptr}, workspace, values.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    memory_.final_value[open_ends_[i].first * memory_.num_rows + open_ends_[i].second] = values[i];
  }
}

void RolloutBlock::watch_obs() {
  const auto steps = static_cast<double>(memory_.num_steps);
  for (std::size_t part = 0; part < leaves_.size(); ++part) {
    const std::size_t size = rows_.obs_parts()[part].size, width = count() * size;
    const auto at = [&](std::size_t step) { return memory_.obs[part] + (step * memory_.num_rows + begin_) * size; };
    if (!key_.low[part].empty()) {
      for (std::size_t step = 0; step < memory_.num_steps; ++step) {
        const float* obs = at(step);
        for (std::size_t row = 0; row < count(); ++row, obs += size) {
          for (std::size_t i = 0; i < size; ++i) {
            out_of_bounds_ += (obs[i] < key_.low[part][i]) | (obs[i] > key_.high[part][i]);
          }
        }
      }
    }
    if (!key_.with_moments[part]) continue;
    auto& mean = mean_[part];
    auto& variance = variance_[part];
    mean.assign(width, 0);
    variance.assign(width, 0);
    for (std::size_t step = 0; step < memory_.num_steps; ++step) {
      for (std::size_t i = 0; i < width; ++i) mean[i] += static_cast<double>(at(step)[i]);
    }
    for (double& value : mean) value /= steps;
    for (std::size_t step = 0; step < memory_.num_steps; ++step) {
      for (std::size_t i = 0; i < width; ++i) {
        const double delta = static_cast<double>(at(step)[i]) - mean[i];
        variance[i] += delta * delta;
      }
    }
    for (double& value : variance) value /= steps;
  }
}

void RolloutBlock::report(std::size_t row, Where where, std::size_t part, std::size_t index, double value) {
  if (!problem_) problem_ = NonFinite{step_, row, where, part, index, value};
}

void RolloutBlock::add_to(RolloutResult& result) const {
  result.episodes.insert(result.episodes.end(), episodes_.begin(), episodes_.end());
  result.out_of_bounds += out_of_bounds_;
  // The earliest of all blocks, whichever way rows were cut into blocks.
  const auto when = [](const NonFinite& problem) { return std::pair(problem.step, problem.row); };
  if (problem_ && (!result.problem || when(*problem_) < when(*result.problem))) result.problem = problem_;
  for (std::size_t part = 0; part < leaves_.size(); ++part) {
    if (!key_.with_moments[part] || mean_[part].empty()) continue;
    const std::size_t size = rows_.obs_parts()[part].size;
    auto& moments = result.moments[part];
    moments.mean.resize(size);
    moments.variance.resize(size);
    for (std::size_t row = 0; row < count(); ++row) {
      moments.merge(static_cast<double>(memory_.num_steps), &mean_[part][row * size], &variance_[part][row * size]);
    }
  }
}

}  // namespace surefoot
