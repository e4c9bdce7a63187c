// Where a rollout is written, and what it is made from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "surefoot/policy.hpp"

namespace surefoot {

/// A policy with frozen weights that acts in some rows in the learner's place. Its critic is not asked.
struct OtherPolicy {
  std::int64_t number;  // rows are told by; above 0
  const Policy* policy;
  std::vector<float*> state;  // one a part of its own, [N, size]
  bool is_followed;           // the learner's memory runs along in its rows
};

/// The rollout's own arrays, time-major: T steps of N rows; observations, masks and starts have one step more.
struct RolloutArrays {
  std::size_t num_steps, num_rows;
  std::vector<float*> obs;                         // one a part, [T+1, N, size]
  bool* mask;                                      // [T+1, N, mask_size] or null
  float* action;                                   // [T, N, A] Box
  std::int64_t* choice;                            // [T, N, A] discrete kinds
  float *log_prob, *value, *reward, *final_value;  // [T, N]
  bool *terminated, *truncated;                    // [T, N]
  bool* episode_start;                             // [T+1, N]
  float* last_value;                               // [N]
  double* running_reward;                          // [N] of the running episodes
  std::int64_t* running_length;                    // [N]
  std::vector<float*> state{};                     // one a part of the policy's, [N, size]: what rows remember
  std::vector<float*> stored_state{};              // one a part, [C, N, size]: what they did before `state_steps`
  std::vector<std::size_t> state_steps{};          // [C] ascending
  bool* valid{};                                   // [T, N]; of envs with several agents, and beside other policies
  float* metrics{};                                // [T, N, M]; only of envs with metrics
  float* prediction{};                             // [T, N, P]; only of critics that learn from it
  std::int64_t* actor{};                           // [T, N] or null: who acted; -1: nobody, the agent was out
  std::vector<OtherPolicy> others{};               // besides the learner
  std::int64_t* acting{};                          // [N] or null: who acts in each row; 0: the learner
  const std::int64_t* wanted{};                    // [N] who does from the row's next episode on
};

/// What makes a rollout the one it is.
struct RolloutKey {
  std::uint64_t seed, first_step;
  std::uint64_t first_row;  // the number of row 0 among all rows of a run, wherever they are stepped
  std::uint32_t stream;
  std::vector<std::vector<float>> low, high;  // bounds of each part, [size]; empty: none
  std::vector<bool> with_moments;             // parts whose mean and variance are wanted
};

}  // namespace surefoot
