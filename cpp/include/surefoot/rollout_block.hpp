// A block of rows during a rollout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "surefoot/acting_groups.hpp"
#include "surefoot/policy.hpp"
#include "surefoot/rollout_arrays.hpp"
#include "surefoot/rows.hpp"

namespace surefoot {

struct FinishedEpisode {
  std::size_t step, row;
  double total_reward;
  std::int64_t length;
};

enum class Where { kObservation, kReward, kFinalObservation, kMask };

/// The first place with NaN or infinity, or with a mask that forbids every choice.
struct NonFinite {
  std::size_t step, row;
  Where where;
  std::size_t leaf, index;
  double value;
};

/// Mean and population variance of a leaf of the observation over a rollout.
struct LeafMoments {
  double count = 0;
  std::vector<double> mean, variance;

  /// Merges other moments (Chan, Golub and LeVeque 1979).
  void merge(double other_count, const double* other_mean, const double* other_variance);
};

/// Moments of each row: shares of a run on other machines are merged in the order of rows.
struct RowMoments {
  std::vector<double> counts, mean, variance;  // [N], [N, size], [N, size]
};

struct RolloutResult {
  std::vector<FinishedEpisode> episodes;         // by step, then row
  std::vector<LeafMoments> moments;              // one per leaf; empty for leaves without `with_moments`
  std::vector<RowMoments> row_moments;           // likewise
  std::size_t num_steps = 0, out_of_bounds = 0;  // counted over valid steps
  std::optional<NonFinite> problem;
};

/// Rows `begin` to `end`, which are whole envs. Each step normalizes, infers, samples, steps, stores, keeps final
/// observations and resets ended envs.
class RolloutBlock {
 public:
  RolloutBlock(Rows& rows, const Policy& policy, const RolloutArrays& arrays, const RolloutKey& key, std::size_t begin,
               std::size_t end);

  bool is_done() const { return step_ == arrays_.num_steps || problem_.has_value(); }
  /// Runs more steps; after the last one, also computes the values of truncated episodes' final observations.
  void advance(std::size_t num_steps, Workspace& workspace);

  /// Adds the results of this block; call it in the order of rows.
  void add_to(RolloutResult& result) const;

 private:
  std::size_t count() const { return end_ - begin_; }
  void store_state();
  void act(Workspace& workspace);
  void act_alone(Workspace& workspace);
  /// The number of the policy that acts in a row; 0 is the learner.
  std::int64_t acting(std::size_t row) const { return arrays_.acting == nullptr ? 0 : arrays_.acting[row]; }
  void step_env(std::size_t env, const Action& actions);
  void record(std::size_t row, const RowStep& step);
  void measure(std::size_t row, const RowStep& step);
  void store_obs(std::size_t row, std::size_t step);
  void keep_final_obs(std::size_t row);
  void value_final_obs(Workspace& workspace);
  void watch_obs();
  void count_out_of_bounds(std::size_t leaf);
  void find_moments(std::size_t leaf);
  bool is_valid(std::size_t step, std::size_t row) const;
  template <class Work>
  void each_valid(std::size_t step, std::size_t size, const Work& work) const;
  void report(std::size_t row, Where where, std::size_t leaf, std::size_t index, double value);

  Rows& rows_;
  const Policy& policy_;
  const RolloutArrays& arrays_;
  const RolloutKey& key_;
  std::size_t begin_, end_, step_ = 0;
  std::vector<double> observed_, measured_;
  std::vector<RowStep> steps_;  // one per agent of an env
  std::vector<float> env_action_;
  std::vector<std::int64_t> env_choice_;
  std::vector<const float*> leaves_;
  std::vector<float*> state_;           // one pointer per tensor of the state, at the first row of this block
  std::optional<ActingGroups> groups_;  // set if other policies act in some rows
  std::size_t next_stored_ = 0;         // index into `state_steps`
  std::vector<FinishedEpisode> episodes_;
  std::vector<std::pair<std::size_t, std::size_t>> open_ends_;  // (step, row) of truncated episodes
  std::vector<std::vector<float>> final_obs_, final_state_;     // one per leaf or tensor, [open ends, size]
  std::vector<std::vector<double>> mean_, variance_;            // one array per leaf, [rows, size]
  std::vector<double> counts_;                                  // [rows] valid steps
  std::size_t num_steps_ = 0, out_of_bounds_ = 0;
  std::optional<NonFinite> problem_;
};

}  // namespace surefoot
