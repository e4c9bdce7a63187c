#include "surefoot/acting_groups.hpp"

#include <algorithm>

namespace surefoot {
namespace {

template <class Number>
void gather(const std::vector<std::size_t>& rows, std::size_t size, const Number* from, Number* to) {
  for (const std::size_t row : rows) to = std::copy_n(from + row * size, size, to);
}

template <class Number>
void scatter(const std::vector<std::size_t>& rows, std::size_t size, const Number* from, Number* to) {
  for (const std::size_t row : rows) {
    std::copy_n(from, size, to + row * size);
    from += size;
  }
}

/// Whether a network of the policy reads a leaf of the observation; the normalizer of one that none reads is empty.
bool reads(const PolicyPlan& plan, std::size_t leaf) {
  const auto has = [leaf](const BodyPlan& body) {
    return std::any_of(body.encoders.begin(), body.encoders.end(), [leaf](const auto& one) { return one.obs == leaf; });
  };
  return !plan.obs[leaf].normalizer.empty() || has(plan.actor) || (!plan.shares_trunk && has(plan.critic));
}

}  // namespace

ActingGroups::ActingGroups(const Rows& rows, const Policy& learner, const RolloutArrays& arrays, const RolloutKey& key,
                           std::size_t begin, std::size_t end)
    : rows_(rows),
      arrays_(arrays),
      key_(key),
      begin_(begin),
      count_(end - begin),
      obs_(rows.obs_parts().size()),
      start_(new bool[count_]),
      mask_(rows.mask_size() > 0 ? new bool[count_ * rows.mask_size()] : nullptr),
      action_(count_ * rows.action_size()),
      log_prob_(count_),
      value_(count_),
      prediction_(arrays.prediction == nullptr ? 0 : count_ * learner.prediction_size()),
      choice_(count_ * rows.action_size()) {
  groups_.push_back({0, &learner, arrays.state, true});
  for (const OtherPolicy& other : arrays.others) {
    groups_.push_back({other.number, other.policy, other.state, other.is_followed});
  }
  for (Group& group : groups_) {
    for (std::size_t tensor = 0; tensor < group.state.size(); ++tensor) {
      group.state[tensor] += begin * group.policy->state_sizes()[tensor];
    }
    for (std::size_t leaf = 0; leaf < obs_.size(); ++leaf) {
      group.reads.push_back(reads(group.policy->plan(), leaf));
      if (group.reads[leaf]) obs_[leaf].resize(count_ * rows.obs_sizes()[leaf]);
    }
  }
  regroup();
}

ActingGroups::Group& ActingGroups::group_of(std::int64_t number) {
  return *std::find_if(groups_.begin(), groups_.end(), [&](const Group& group) { return group.number == number; });
}

void ActingGroups::assign(std::size_t step) {
  const bool* start = arrays_.episode_start + step * arrays_.num_rows + begin_;
  bool has_changed = false;
  for (std::size_t row = 0; row < count_; ++row) {
    std::int64_t& acting = arrays_.acting[begin_ + row];
    const std::int64_t wanted = arrays_.wanted[begin_ + row];
    if (!start[row] || acting == wanted) continue;
    acting = wanted;
    has_changed = true;
    if (!group_of(wanted).is_followed) forget(row);
  }
  if (has_changed) regroup();
}

void ActingGroups::regroup() {
  const auto add = [&](Group& group, std::size_t row) {
    group.rows.push_back(row);
    group.numbers.push_back(key_.first_row + begin_ + row);
  };
  for (Group& group : groups_) {
    group.rows.clear();
    group.numbers.clear();
  }
  is_learner_alone_ = true;
  for (std::size_t row = 0; row < count_; ++row) {
    Group& group = group_of(arrays_.acting[begin_ + row]);
    is_learner_alone_ &= group.number == 0;
    add(group, row);
    if (group.number != 0 && group.is_followed) add(groups_.front(), row);
  }
}

/// Clears the learner's recurrent state of a row in which it no longer acts.
void ActingGroups::forget(std::size_t row) {
  const Group& learner = groups_.front();
  for (std::size_t tensor = 0; tensor < learner.state.size(); ++tensor) {
    const std::size_t size = learner.policy->state_sizes()[tensor];
    std::fill_n(learner.state[tensor] + row * size, size, 0.0f);
  }
}

void ActingGroups::act(std::size_t step, Workspace& workspace, const StagedActions& staged) {
  for (const Group& group : groups_) {
    if (group.rows.empty()) continue;
    const bool is_learner = group.number == 0, predicts = is_learner && arrays_.prediction != nullptr;
    take(group, step);
    group.policy->act(group.rows.size(), leaves_, {before_, start_.get()}, mask_.get(),
                      {key_.seed, key_.first_step + step, 0, key_.stream, group.numbers.data()}, workspace,
                      {action_.data(), choice_.data(), log_prob_.data(), is_learner ? value_.data() : nullptr, after_,
                       predicts ? prediction_.data() : nullptr});
    give(group, step, staged);
  }
}

void ActingGroups::take(const Group& group, std::size_t step) {
  const std::size_t place = step * arrays_.num_rows + begin_;
  leaves_.clear();
  before_.clear();
  after_.clear();
  for (std::size_t leaf = 0; leaf < obs_.size(); ++leaf) {
    const std::size_t size = rows_.obs_sizes()[leaf];
    leaves_.push_back(group.reads[leaf] ? obs_[leaf].data() : nullptr);
    if (group.reads[leaf]) gather(group.rows, size, arrays_.obs[leaf] + place * size, obs_[leaf].data());
  }
  state_.resize(std::max(state_.size(), group.state.size()));
  for (std::size_t tensor = 0; tensor < group.state.size(); ++tensor) {
    const std::size_t size = group.policy->state_sizes()[tensor];
    state_[tensor].resize(std::max(state_[tensor].size(), count_ * size));
    gather(group.rows, size, group.state[tensor], state_[tensor].data());
    before_.push_back(state_[tensor].data());
    after_.push_back(state_[tensor].data());
  }
  gather(group.rows, 1, arrays_.episode_start + place, start_.get());
  if (mask_) gather(group.rows, rows_.mask_size(), arrays_.mask + place * rows_.mask_size(), mask_.get());
}

void ActingGroups::give(const Group& group, std::size_t step, const StagedActions& staged) {
  const Policy& policy = *group.policy;
  const std::size_t count = group.rows.size(), size = rows_.action_size();
  const std::size_t place = step * arrays_.num_rows + begin_;
  for (std::size_t tensor = 0; tensor < after_.size(); ++tensor) {
    scatter(group.rows, policy.state_sizes()[tensor], after_[tensor], group.state[tensor]);
  }
  if (policy.is_discrete()) {
    scatter(group.rows, size, choice_.data(), arrays_.choice + place * size);
    policy.head().choices_to_env(count, choice_.data(), choice_.data());
    scatter(group.rows, size, choice_.data(), staged.choices);
  } else {
    scatter(group.rows, size, action_.data(), arrays_.action + place * size);
    policy.head().to_env(count, action_.data(), action_.data());
    scatter(group.rows, size, action_.data(), staged.values);
  }
  if (group.number != 0) {  // rows of other policies are not learned from
    for (auto* numbers : {&log_prob_, &value_, &prediction_}) std::fill(numbers->begin(), numbers->end(), 0.0f);
  }
  scatter(group.rows, 1, log_prob_.data(), arrays_.log_prob + place);
  scatter(group.rows, 1, value_.data(), arrays_.value + place);
  if (arrays_.prediction == nullptr) return;
  const std::size_t predicted = groups_.front().policy->prediction_size();
  scatter(group.rows, predicted, prediction_.data(), arrays_.prediction + place * predicted);
}

}  // namespace surefoot
