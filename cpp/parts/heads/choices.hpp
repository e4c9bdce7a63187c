// Base class of discrete heads: logits, number of choices of each element, and masks.
#pragma once

#include "surefoot/parts/head.hpp"

namespace surefoot {

/// The kernels of a kind of discrete head.
struct ChoiceKernels {
  void (*sample)(const ChoiceBlock& block);
  void (*evaluate)(const ChoiceEvaluation& step);
  void (*gradient)(const ChoiceGradient& step);
};

class ChoiceHead : public Head {
 public:
  bool is_discrete() const override { return true; }
  std::size_t action_size() const override { return sizes_.size(); }
  std::size_t noise_size() const override { return sizes_.size(); }
  std::size_t mask_size() const override { return num_logits_; }
  void check(TensorReader& tensors, std::size_t in) const override { tensors.check_linear(layer_, in, num_logits_); }
  void pack(const TensorReader& tensors) override { logits_.pack(kernels_, tensors, layer_); }
  void sample(const PartRows& rows, const bool* mask, const NoiseKey& key, const Sampled& out) const override;

  std::vector<Learned> layers() const override { return {{layer_, num_logits_}}; }
  void evaluate(const LearnedRows& rows, const Done& done, float* log_prob, float* entropy) const override;
  void gradient(const LearnedRows& rows, const Done& done, const float* by_log_prob, const float* by_entropy,
                const GivenGradient& out) const override;

 protected:
  /// `sizes` is the number of choices of each element.
  ChoiceHead(const PartPlan& plan, const Kernels& kernels, std::vector<std::int64_t> sizes, std::size_t num_logits,
             const ChoiceKernels& choices);

  std::vector<std::int64_t> sizes_;

 private:
  /// Arguments of the kernels; kept buffers have the same addresses in every call.
  ChoiceEvaluation evaluation(const LearnedRows& rows, const Done& done, float* log_prob, float* entropy) const;

  std::string layer_;
  std::size_t num_logits_;
  std::int64_t most_;
  ChoiceKernels choices_;
  Layer logits_;
};

/// One of several choices for each element; the env counts them from `start`.
class CategoricalHead : public ChoiceHead {
 public:
  CategoricalHead(const PartPlan& plan, const Kernels& kernels);

  bool leaves_a_choice(const bool* mask) const override;
  void choices_to_env(std::size_t rows, const std::int64_t* choice, std::int64_t* env_choice) const override;

 private:
  std::vector<std::int64_t> start_;
};

}  // namespace surefoot
