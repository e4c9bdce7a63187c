// Several policies in a block of rows: the rows of each are gathered, so that each policy acts once per step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "surefoot/rollout_arrays.hpp"
#include "surefoot/rows.hpp"

namespace surefoot {

/// Where actions go on their way to the envs, [rows of the block, action_size]; only the env's own kind is written.
struct StagedActions {
  float* values;
  std::int64_t* choices;
};

/// Which policy acts in which of the rows `begin` to `end`.
class ActingGroups {
 public:
  ActingGroups(const Rows& rows, const Policy& learner, const RolloutArrays& arrays, const RolloutKey& key,
               std::size_t begin, std::size_t end);

  /// Rows whose episodes begin with this step go to the policies that they are assigned to.
  void assign(std::size_t step);
  bool is_learner_alone() const { return is_learner_alone_; }
  /// Each policy acts in its rows.
  void act(std::size_t step, Workspace& workspace, const StagedActions& staged);

 private:
  struct Group {
    std::int64_t number;
    const Policy* policy;
    std::vector<float*> state;  // one a part, from the block's first row on
    bool is_followed;
    std::vector<bool> reads{};             // which parts of the observation
    std::vector<std::size_t> rows{};       // within the block
    std::vector<std::uint64_t> numbers{};  // of these rows among all rows of a run
  };

  Group& group_of(std::int64_t number);
  void regroup();
  void forget(std::size_t row);
  /// What a group acts on, side by side.
  void take(const Group& group, std::size_t step);
  /// What it did, to where it belongs.
  void give(const Group& group, std::size_t step, const StagedActions& staged);

  const Rows& rows_;
  const RolloutArrays& arrays_;
  const RolloutKey& key_;
  std::size_t begin_, count_;
  bool is_learner_alone_ = true;
  std::vector<Group> groups_;  // the learner's first: where it is followed, others act after it
  // Of the rows of one group, side by side.
  std::vector<std::vector<float>> obs_, state_;
  std::unique_ptr<bool[]> start_, mask_;
  std::vector<float> action_, log_prob_, value_, prediction_;
  std::vector<std::int64_t> choice_;
  std::vector<const float*> leaves_, before_;  // of `obs_` and `state_`
  std::vector<float*> after_;
};

}  // namespace surefoot
