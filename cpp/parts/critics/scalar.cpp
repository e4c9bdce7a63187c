// One number a state, raw or in units of the return's standard deviation.
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

 private:
  std::string layer_;
  std::string returns_;  // prefix of the statistics of normalized returns; empty: raw
  Layer head_;
  float shift_ = 0, scale_ = 1;
};

const RegisteredPart<Critic, ScalarCritic> kScalar{"scalar"};

}  // namespace
}  // namespace surefoot
