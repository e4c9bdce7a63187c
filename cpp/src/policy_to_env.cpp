// Raw actions to what the env takes, as the learner's heads do it.
#include "policy_weights.hpp"

namespace surefoot {

namespace {

/// A NaN passes through.
float clipped(float value, float low, float high) {
  if (value < low) value = low;
  return value > high ? high : value;
}

}  // namespace

void Policy::to_env(std::size_t rows, const float* action, float* env_action) const {
  const HeadPlan& head = plan_.head;
  const std::size_t size = head.low.size();
  if (head.kind == Distribution::kTanhGaussian) {
    kernels_.tanh(action, env_action, rows * size);
    action = env_action;
  }
  for (std::size_t i = 0; i < rows * size; ++i) {
    const float low = head.low[i % size];
    const float high = head.high[i % size];
    if (head.kind == Distribution::kBeta) {
      env_action[i] = low + action[i] * (high - low);
    } else if (head.kind == Distribution::kTanhGaussian) {
      env_action[i] = low + (action[i] + 1) * (0.5f * (high - low));
    } else {
      const float scaled = head.rescale ? low + (action[i] + 1) * (0.5f * (high - low)) : action[i];
      env_action[i] = clipped(scaled, low, high);
    }
  }
}

}  // namespace surefoot
