// A Gaussian squashed by tanh into the action's bounds; the raw action is the value before tanh.
#include "gaussian.hpp"

namespace surefoot {
namespace {

class TanhGaussianHead final : public GaussianHead {
 public:
  TanhGaussianHead(const PartPlan& plan, const Kernels& kernels) : GaussianHead(plan, kernels, true) {}

  void to_env(std::size_t rows, const float* action, float* env_action) const override {
    const std::size_t size = action_size();
    kernels_.tanh(action, env_action, rows * size);
    for (std::size_t i = 0; i < rows * size; ++i) {
      const float low = low_[i % size], high = high_[i % size];
      env_action[i] = low + (env_action[i] + 1) * (0.5f * (high - low));
    }
  }
};

const RegisteredPart<Head, TanhGaussianHead> kTanhGaussian{"tanh_gaussian"};

}  // namespace
}  // namespace surefoot
