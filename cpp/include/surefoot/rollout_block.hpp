// A block of rows on its way through a rollout.
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

/// NaN or infinity, or a mask that forbids everything, where it was first seen.
struct NonFinite {
  std::size_t step, row;
  Where where;
  std::size_t part, index;
  double value;
};

/// Mean and population variance of a part of the observation over a rollout.
struct PartMoments {
  double count = 0;
  std::vector<double> mean, variance;

  /// Chan, Golub and LeVeque (1979).
  void merge(double other_count, const double* other_mean, const double* other_variance);
};

/// The same of every row on its own: parts of a run on other machines are merged in the order of rows.
struct RowMoments {
  std::vector<double> counts, mean, variance;  // [N], [N, size], [N, size]
};

struct RolloutResult {
  std::vector<FinishedEpisode> episodes;         // by step, then row
  std::vector<PartMoments> moments;              // one a part; empty where not wanted
  std::vector<RowMoments> row_moments;           // likewise
  std::size_t num_steps = 0, out_of_bounds = 0;  // in valid steps
  std::optional<NonFinite> problem;
};

/// Rows `begin` to `end`, of whole envs: normalize, infer, sample, step, store, reset in the same step, keep final
/// observations.
class RolloutBlock {
 public:
  RolloutBlock(Rows& rows, const Policy& policy, const RolloutArrays& arrays, const RolloutKey& key, std::size_t begin,
               std::size_t end);

  bool is_done() const { return step_ == arrays_.num_steps || problem_.has_value(); }
  /// Some more steps; with the last one, the values of what the steps left open.
  void advance(std::size_t num_steps, Workspace& workspace);

  /// Adds what this block found; to be called in the order of rows.
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
  void count_out_of_bounds(std::size_t part);
  void find_moments(std::size_t part);
  bool is_valid(std::size_t step, std::size_t row) const;
  template <class Work>
  void each_valid(std::size_t step, std::size_t size, const Work& work) const;
  void report(std::size_t row, Where where, std::size_t part, std::size_t index, double value);

  Rows& rows_;
  const Policy& policy_;
  const RolloutArrays& arrays_;
  const RolloutKey& key_;
  std::size_t begin_, end_, step_ = 0;
  std::vector<double> observed_, measured_;
  std::vector<RowStep> steps_;  // of an env's agents
  std::vector<float> env_action_;
  std::vector<std::int64_t> env_choice_;
  std::vector<const float*> leaves_;
  std::vector<float*> state_;           // one a part, of this block's rows
  std::optional<ActingGroups> groups_;  // only if other policies act in some rows
  std::size_t next_stored_ = 0;         // of `state_steps`
  std::vector<FinishedEpisode> episodes_;
  std::vector<std::pair<std::size_t, std::size_t>> open_ends_;  // (step, row) of truncated episodes
  std::vector<std::vector<float>> final_obs_, final_state_;     // one a part, [open ends, size]
  std::vector<std::vector<double>> mean_, variance_;            // one a part, [rows, size]
  std::vector<double> counts_;                                  // [rows] valid steps
  std::size_t num_steps_ = 0, out_of_bounds_ = 0;
  std::optional<NonFinite> problem_;
};

}  // namespace surefoot
