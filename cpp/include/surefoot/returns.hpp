// Sums over the steps of a rollout, row by row; bit for bit those of learning/estimators/gae.py and
// learning/reward_scaler.py.
#pragma once

#include <cstddef>

namespace surefoot {

/// A rollout of T steps and N rows. All arrays are [T, N], except `last_value` [N].
struct GaeRollout {
  std::size_t steps, rows;
  const float* reward;
  const float* value;
  const float* last_value;
  const float* final_value;
  const bool* terminated;
  const bool* truncated;
  const bool* valid;
};

/// Generalized advantage estimation; advantages and returns are [T, N].
void gae(const GaeRollout& rollout, double gamma, double lambda, float* advantage, float* returns);

/// Discounted sums of past rewards, which restart after an episode; `carried` [N] are the sums before the first step.
void discounted_sums(std::size_t steps, std::size_t rows, const float* reward, const bool* ended, float gamma,
                     const float* carried, float* sums);

}  // namespace surefoot
