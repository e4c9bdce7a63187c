// One number a state, raw or in units of the return's standard deviation.
#include <algorithm>
#include <limits>

#include "surefoot/parts/critic.hpp"

namespace surefoot {
namespace {

class ScalarCritic final : public Critic {
 public:
  ScalarCritic(const PartPlan& plan, const Kernels& kernels)
      : Critic(kernels), layer_(plan.text("layer")), returns_(plan.text("returns")) {}

  std::size_t prediction_size() const override { return 1; }

  void check(TensorReader& tensors, std::size_t in) const override {
    tensors.check_linear(layer_, in, prediction_size());
    if (returns_.empty()) return;
    tensors.check_size(returns_ + ".shift", 1);
    tensors.check_size(returns_ + ".scale", 1);
  }

  void pack(const TensorReader& tensors) override {
    head_.pack(kernels_, tensors, layer_);
    if (returns_.empty()) return;
    shift_ = *tensors[returns_ + ".shift"].data;
    scale_ = *tensors[returns_ + ".scale"].data;
  }

  MatrixView predict(const PartRows& rows) const override { return linear(head_, rows, 0); }

  void value(std::size_t rows, MatrixView prediction, float* value) const override {
    for (std::size_t row = 0; row < rows; ++row) {
      value[row] = prediction.data[row * prediction.stride] * scale_ + shift_;
    }
  }

  std::vector<Learned> layers() const override { return {{layer_, prediction_size()}}; }
  std::vector<Learned> vectors() const override {
    if (returns_.empty()) return {};
    return {{returns_ + ".shift", 1}, {returns_ + ".scale", 1}};
  }

  void loss(const LearnedRows& rows, const ValueTargets& targets, float* loss,
            const GivenGradient& out) const override {
    const bool is_raw = returns_.empty();
    const float shift = is_raw ? 0 : *rows.vectors[0], scale = is_raw ? 1 : *rows.vectors[1];
    const std::size_t stride = rows.given[0].stride;
    for (std::size_t row = 0; row < rows.count; ++row) {
      const float target = (targets.returns[row] - shift) / scale, old = (targets.old_value[row] - shift) / scale;
      const Loss found = clipped_loss(rows.given[0].data[row * stride], old, target, targets.clip);
      loss[row] = found.value;
      out.given[0][row * stride] = found.slope;
    }
    // The statistics are not learned.
    for (float* const by_statistic : out.vectors) {
      if (by_statistic) std::fill_n(by_statistic, rows.count, 0.0f);
    }
  }

 private:
  struct Loss {
    float value, slope;
  };

  /// max((v - R)^2, (v_clipped - R)^2), v_clipped within `clip` of the old value; slopes where it bends are torch's. No
  /// comparison is true of a NaN, so that it reaches both results.
  static Loss clipped_loss(float prediction, float old, float target, float clip) {
    const float error = prediction - target, square = error * error;
    if (clip == std::numeric_limits<float>::infinity()) return {square, 2 * error};
    const float change = prediction - old;
    const float clipped_error = old + std::clamp(change, -clip, clip) - target;
    const float clipped_square = clipped_error * clipped_error;
    const float clipped_slope = 2 * clipped_error * (change >= -clip && change <= clip ? 1.0f : 0.0f);
    if (square > clipped_square) return {square, 2 * error};
    if (square < clipped_square) return {clipped_square, clipped_slope};
    return {clipped_square, 0.5f * (2 * error) + 0.5f * clipped_slope};
  }

  std::string layer_;
  std::string returns_;  // prefix of the statistics of normalized returns; empty: raw
  Layer head_;
  float shift_ = 0, scale_ = 1;
};

const RegisteredPart<Critic, ScalarCritic> kScalar{"scalar"};

}  // namespace
}  // namespace surefoot
