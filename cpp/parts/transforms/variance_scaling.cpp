// Scales each element of the gradient down by its variance over time; the formulas are in
// learning/transforms/variance_scaling.py.
#include <cmath>

#include "surefoot/parts/transform.hpp"

namespace surefoot {
namespace {

class VarianceScaling final : public Transform {
 public:
  VarianceScaling(const PartPlan& plan, const Kernels& kernels)
      : Transform(plan, kernels),
        beta_(plan.number("beta")),
        warmup_(plan.number("warmup")),
        step_{.floor = static_cast<float>(plan.number("floor")),
              .epsilon = static_cast<float>(plan.number("epsilon"))} {}

  std::vector<std::pair<std::string, double>> measures() const override {
    return {{"mean_scale", 1.0}, {"share_at_floor", 0.0}};
  }
  std::vector<std::string> tensors() const override { return {"mean", "variance"}; }

  void begin(const Knobs& knobs) override { strength_ = knobs.at(name() + ".strength"); }

  void step(std::int64_t number) override {
    const double count = static_cast<double>(number), share = (1 - beta_) / (1 - std::pow(beta_, count));
    step_.share = static_cast<float>(share);
    step_.kept = static_cast<float>(1 - share);
    step_.strength = count <= warmup_ ? 0.0f : static_cast<float>(strength_);
  }

  void run(std::size_t count, float* gradient, std::span<float* const> tensors, double* sums) const override {
    const ScaledSums found = kernels_.scale_by_variance(step_, count, gradient, tensors[0], tensors[1]);
    sums[0] += found.scale;
    sums[1] += found.at_floor;
  }

 private:
  double beta_, warmup_, strength_ = 0;
  VarianceStep step_;
};

const RegisteredPart<Transform, VarianceScaling> kVarianceScaling{"variance_scaling"};

}  // namespace
}  // namespace surefoot
