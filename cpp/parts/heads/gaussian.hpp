// A diagonal Gaussian with a fixed, learned or state-dependent standard deviation; tanh_gaussian.cpp builds on it.
#pragma once

#include "surefoot/parts/head.hpp"

namespace surefoot {

class GaussianHead : public Head {
 public:
  GaussianHead(const PartPlan& plan, const Kernels& kernels) : GaussianHead(plan, kernels, false) {}

  std::size_t action_size() const override { return low_.size(); }
  std::size_t noise_size() const override { return action_size() + action_size() % 2; }
  void check(TensorReader& tensors, std::size_t in) const override;
  void pack(const TensorReader& tensors) override;
  void sample(const PartRows& rows, const bool* mask, const NoiseKey& key, const Sampled& out) const override;
  void to_env(std::size_t rows, const float* action, float* env_action) const override;

 protected:
  /// With `squash`, log-probabilities are those of tanh of the sample.
  GaussianHead(const PartPlan& plan, const Kernels& kernels, bool squash);

  void shape_noise(std::size_t rows, float* uniforms) const override;

  std::vector<float> low_, high_;

 private:
  MatrixView state_std(const PartRows& rows) const;

  std::string mean_layer_;
  std::string std_layer_;  // empty: the standard deviation does not depend on the state
  std::string log_std_name_;
  float std_floor_;
  bool rescale_;  // [-1, 1] to the bounds before clipping
  bool squash_;
  Layer mean_, std_head_;
  AlignedFloats log_std_;
  AlignedFloats std_;  // where it does not depend on the state
};

}  // namespace surefoot
