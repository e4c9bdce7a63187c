// A diagonal Gaussian with a fixed, learned or state-dependent standard deviation; tanh_gaussian.cpp builds on it.
#pragma once

#include "surefoot/parts/head.hpp"

namespace surefoot {

class GaussianHead : public Head {
 public:
  GaussianHead(const PartPlan& plan, const Kernels& kernels) : GaussianHead(plan, kernels, nullptr) {}

  std::size_t action_size() const override { return low_.size(); }
  std::size_t noise_size() const override { return action_size() + action_size() % 2; }
  void check(TensorReader& tensors, std::size_t in) const override;
  void pack(const TensorReader& tensors) override;
  void sample(const PartRows& rows, const bool* mask, const NoiseKey& key, const Sampled& out) const override;
  void to_env(std::size_t rows, const float* action, float* env_action) const override;

  std::vector<Learned> layers() const override;
  std::vector<Learned> vectors() const override { return {{log_std_name_, action_size()}}; }
  void evaluate(const LearnedRows& rows, const Done& done, float* log_prob, float* entropy) const override;
  void gradient(const LearnedRows& rows, const Done& done, const float* by_log_prob, const float* by_entropy,
                const GivenGradient& out) const override;

 protected:
  /// With `squash`, log-probabilities are those of tanh(sample), and the entropy is computed with its nodes.
  GaussianHead(const PartPlan& plan, const Kernels& kernels, const Quadrature* squash);

  void shape_noise(std::size_t rows, float* uniforms) const override;

  std::vector<float> low_, high_;

 private:
  /// The kept buffers: std = floor + grown, and others for the gradient.
  struct Kept {
    std::size_t count;   // elements of the first three: one row if all rows are equal
    std::size_t stride;  // row stride; 0 if all rows are equal
    float *grown, *std, *log_std;
    float *distance, *mean_slope, *std_slope;
  };

  bool depends_on_state() const { return !std_layer_.empty(); }
  MatrixView state_std(const PartRows& rows) const;
  Kept kept(const LearnedRows& rows) const;

  std::string mean_layer_;
  std::string std_layer_;  // empty: the standard deviation does not depend on the state
  std::string log_std_name_;
  float std_floor_;
  bool rescale_;  // rescale [-1, 1] to the bounds before clipping
  const Quadrature* squash_;
  Layer mean_, std_head_;
  AlignedFloats log_std_;
  AlignedFloats std_;  // only if it does not depend on the state
};

}  // namespace surefoot
