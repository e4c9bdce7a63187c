#include "surefoot/returns.hpp"

namespace surefoot {

void gae(const GaeRollout& rollout, double gamma, double lambda, float* advantage, float* returns) {
  const float discount = static_cast<float>(gamma), trace = static_cast<float>(gamma * lambda);
  for (std::size_t step = rollout.steps; step-- > 0;) {
    const bool is_last = step + 1 == rollout.steps;
    const std::size_t first = step * rollout.rows;
    const float* const following = is_last ? rollout.last_value : rollout.value + first + rollout.rows;
    const float* const later = advantage + first + rollout.rows;
    for (std::size_t row = 0; row < rollout.rows; ++row) {
      const std::size_t at = first + row;
      const bool is_cut = rollout.terminated[at] || rollout.truncated[at] || !rollout.valid[at];
      float bootstrap = rollout.truncated[at] ? rollout.final_value[at] : following[row];
      if (rollout.terminated[at]) bootstrap = 0;
      const float value = rollout.value[at], delta = rollout.reward[at] + discount * bootstrap - value;
      // Multiply even where the trace is cut, so that a NaN shows.
      const float carried = (is_cut ? 0.0f : trace) * (is_last ? 0.0f : later[row]);
      advantage[at] = (rollout.valid[at] ? delta : 0.0f) + carried;
      returns[at] = advantage[at] + value;
    }
  }
}

void discounted_sums(std::size_t steps, std::size_t rows, const float* reward, const bool* ended, float gamma,
                     const float* carried, float* sums) {
  for (std::size_t row = 0; row < rows; ++row) {
    float before = carried[row];
    for (std::size_t at = row; at < steps * rows; at += rows) {
      sums[at] = gamma * before + reward[at];
      before = ended[at] ? 0.0f * sums[at] : sums[at];
    }
  }
}

}  // namespace surefoot
