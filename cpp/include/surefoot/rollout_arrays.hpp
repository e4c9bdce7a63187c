// Destination and inputs of a rollout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "surefoot/policy.hpp"

namespace surefoot {

/// A policy with frozen weights that acts in some rows instead of the learner. Its critic is not evaluated.
struct OtherPolicy {
  std::int64_t number;  // id of the policy in `acting`; greater than 0
  const Policy* policy;
  std::vector<float*> state;  // one array per tensor of its state, [N, size]
  bool is_followed;           // whether the learner's memory is also updated in its rows
};

/// The arrays of a rollout, time-major: T steps of N rows; observations, masks and starts have one more step.
struct RolloutArrays {
  std::size_t num_steps, num_rows;
  std::vector<float*> obs;                         // one array per leaf, [T+1, N, size]
  bool* mask;                                      // [T+1, N, mask_size] or null
  float* action;                                   // [T, N, A] Box
  std::int64_t* choice;                            // [T, N, A] discrete kinds
  float *log_prob, *value, *reward, *final_value;  // [T, N]
  bool *terminated, *truncated;                    // [T, N]
  bool* episode_start;                             // [T+1, N]
  float* last_value;                               // [N]
  double* running_reward;                          // [N] return so far of the running episodes
  std::int64_t* running_length;                    // [N] length so far
  std::vector<float*> state{};             // one array per tensor of the state, [N, size]: the current recurrent state
  std::vector<float*> stored_state{};      // one array per tensor, [C, N, size]: the state before each of `state_steps`
  std::vector<std::size_t> state_steps{};  // [C] ascending
  bool* valid{};                           // [T, N]; only with several agents or other policies
  float* metrics{};                        // [T, N, M]; only for envs with metrics
  float* prediction{};                     // [T, N, P]; only for critics that learn from their old predictions
  std::int64_t* actor{};  // [T, N] or null: id of the policy that acted; -1 for an agent that is out of the game
  std::vector<OtherPolicy> others{};  // policies other than the learner
  std::int64_t* acting{};             // [N] or null: id of the policy that acts in each row; 0: the learner
  const std::int64_t* wanted{};       // [N] id of the policy that acts from the row's next episode on
};

/// The inputs that the random numbers of a rollout depend on, and options of its observations.
struct RolloutKey {
  std::uint64_t seed, first_step;
  std::uint64_t first_row;  // the number of row 0 among all rows of a run, wherever they are stepped
  std::uint32_t stream;
  std::vector<std::vector<float>> low, high;  // bounds of each leaf of the observation, [size]; empty: none
  std::vector<bool> with_moments;             // leaves of the observation for which mean and variance are computed
};

}  // namespace surefoot
