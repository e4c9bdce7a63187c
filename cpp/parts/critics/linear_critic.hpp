// Critics with one linear layer, whose output is in raw units or in units of the return's standard deviation.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "surefoot/parts/critic.hpp"

namespace surefoot {

class LinearCritic : public Critic {
 public:
  LinearCritic(const PartPlan& plan, std::size_t outputs, const Kernels& kernels)
      : Critic(kernels), layer_(plan.text("layer")), returns_(plan.text("returns")), outputs_(outputs) {}

  std::size_t prediction_size() const override { return outputs_; }

  void check(TensorReader& tensors, std::size_t in) const override {
    tensors.check_linear(layer_, in, outputs_);
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

  void decode(std::size_t rows, MatrixView prediction, float* out, std::size_t stride) const override {
    for (std::size_t row = 0; row < rows; ++row) {
      const float* const from = prediction.data + row * prediction.stride;
      for (std::size_t i = 0; i < outputs_; ++i) out[row * stride + i] = from[i] * scale_ + shift_;
    }
  }

  std::vector<Learned> layers() const override { return {{layer_, outputs_}}; }
  std::vector<Learned> vectors() const override {
    if (returns_.empty()) return {};
    return {{returns_ + ".shift", 1}, {returns_ + ".scale", 1}};
  }

 protected:
  float shift() const { return shift_; }
  float scale() const { return scale_; }

  /// Current statistics of the returns.
  struct Units {
    float shift, scale;
    float encoded(float raw) const { return (raw - shift) / scale; }
  };
  Units units_of(const LearnedRows& rows) const {
    if (returns_.empty()) return {0, 1};
    return {*rows.vectors[0], *rows.vectors[1]};
  }

  /// Sets the gradient of the statistics to 0, because they are not learned.
  static void leave_statistics(std::size_t rows, const GivenGradient& out) {
    for (float* const by_statistic : out.vectors) {
      if (by_statistic) std::fill_n(by_statistic, rows, 0.0f);
    }
  }

 private:
  std::string layer_;
  std::string returns_;  // prefix of the statistics of normalized returns; empty: raw
  std::size_t outputs_;
  Layer head_;
  float shift_ = 0, scale_ = 1;
};

}  // namespace surefoot
