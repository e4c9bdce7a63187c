// Several policies acting in one block of rows: the rows of each policy are gathered, so that it runs once per step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "surefoot/rollout_arrays.hpp"
#include "surefoot/rows.hpp"

namespace surefoot {

/// Destination of the actions for the envs, [rows of the block, action_size]; only the pointer that matches the action
/// space is written.
struct StagedActions {
  float* values;
  std::int64_t* choices;
};

/// Assigns the rows `begin` to `end` to policies and runs each policy on its rows.
class ActingGroups {
 public:
  ActingGroups(const Rows& rows, const Policy& learner, const RolloutArrays& arrays, const RolloutKey& key,
               std::size_t begin, std::size_t end);

  /// Assigns rows whose episodes begin at this step to the policies that `wanted` names.
  void assign(std::size_t step);
  bool is_learner_alone() const { return is_learner_alone_; }
  /// Runs each policy on its rows.
  void act(std::size_t step, Workspace& workspace, const StagedActions& staged);

 private:
  struct Group {
    std::int64_t number;
    const Policy* policy;
    std::vector<float*> state;  // one pointer per tensor, from the block's first row on
    bool is_followed;
    std::vector<bool> reads{};             // which leaves of the observation
    std::vector<std::size_t> rows{};       // within the block
    std::vector<std::uint64_t> numbers{};  // numbers of these rows among all rows of the run
  };

  Group& group_of(std::int64_t number);
  void regroup();
  void forget(std::size_t row);
  /// Gathers the inputs of a group into contiguous buffers.
  void take(const Group& group, std::size_t step);
  /// Scatters the results of a group to its rows.
  void give(const Group& group, std::size_t step, const StagedActions& staged);

  const Rows& rows_;
  const RolloutArrays& arrays_;
  const RolloutKey& key_;
  std::size_t begin_, count_;
  bool is_learner_alone_ = true;
  std::vector<Group> groups_;  // the learner first: other policies act after it where it is followed
  // Buffers with the rows of one group, contiguous.
  std::vector<std::vector<float>> obs_, state_;
  std::unique_ptr<bool[]> start_, mask_;
  std::vector<float> action_, log_prob_, value_, prediction_;
  std::vector<std::int64_t> choice_;
  std::vector<const float*> leaves_, before_;  // pointers into `obs_` and `state_`
  std::vector<float*> after_;
};

}  // namespace surefoot
