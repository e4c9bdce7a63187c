// A Gaussian squashed by tanh into the action's bounds; the raw action is the value before tanh.
#include <array>
#include <cmath>

#include "gaussian.hpp"

namespace surefoot {
namespace {

constexpr std::size_t kNodes = 48;

/// The trapezoidal rule that the Python head explains, with the same nodes and weights.
struct Nodes {
  std::array<float, kNodes> nodes, weights;

  Nodes() {
    std::array<double, kNodes> exact;
    double sum = 0;
    for (std::size_t i = 0; i < kNodes; ++i) {
      const double node = -6 + static_cast<double>(i) * (12.0 / (kNodes - 1));
      nodes[i] = static_cast<float>(node);
      exact[i] = std::exp(-0.5 * node * node);
      sum += exact[i];
    }
    for (std::size_t i = 0; i < kNodes; ++i) weights[i] = static_cast<float>(exact[i] / sum);
  }
};

const Quadrature* under_a_normal() {
  static const Nodes nodes;
  static const Quadrature quadrature{kNodes, nodes.nodes.data(), nodes.weights.data()};
  return &quadrature;
}

class TanhGaussianHead final : public GaussianHead {
 public:
  TanhGaussianHead(const PartPlan& plan, const Kernels& kernels) : GaussianHead(plan, kernels, under_a_normal()) {}

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
