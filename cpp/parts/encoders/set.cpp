// A set of elements: a linear layer with ReLU that all elements share, the mean over the elements, then linear layers.
#include <algorithm>
#include <stdexcept>

#include "surefoot/parts/encoder.hpp"

namespace surefoot {
namespace {

class SetEncoder final : public Encoder {
 public:
  SetEncoder(const PartPlan& plan, const Kernels& kernels)
      : Encoder(kernels),
        layers_(plan.texts("layers")),
        name_(plan.text("element")),
        elements_(plan.count("elements")),
        numbers_(plan.count("numbers")),
        features_(plan.count("features")) {}

  std::vector<std::string> layers() const override { return layers_; }

  std::optional<std::size_t> own_size(std::size_t in) const override {
    if (in != elements_ * numbers_) throw std::invalid_argument("a set's size is not that of its observation");
    return features_;
  }

  std::vector<EncoderTensor> tensors() const override {
    return {{name_ + ".weight", {features_, numbers_}}, {name_ + ".bias", {features_}}};
  }

  std::size_t kept_size() const override { return elements_ * features_; }  // output of the shared layer

  void forward(const EncoderRows& rows, float* out, std::size_t stride) const override {
    for (std::size_t row = 0; row < rows.count; ++row) {
      float *const mean = out + row * stride, *const kept = rows.kept + row * rows.kept_stride;
      std::fill_n(mean, features_, 0.0f);
      for (std::size_t element = 0; element < elements_; ++element) {
        const float* const in = rows.obs.data + row * rows.obs.stride + element * numbers_;
        for (std::size_t feature = 0; feature < features_; ++feature) {
          const float* const weight = rows.tensors[0] + feature * numbers_;
          float sum = rows.tensors[1][feature];
          for (std::size_t i = 0; i < numbers_; ++i) sum += weight[i] * in[i];
          sum = sum < 0 ? 0 : sum;  // NaN stays NaN
          kept[element * features_ + feature] = sum;
          mean[feature] += sum;
        }
      }
      for (std::size_t feature = 0; feature < features_; ++feature) mean[feature] /= static_cast<float>(elements_);
    }
  }

  void backward(const EncoderRows& rows, MatrixView grad, std::span<float* const> grad_tensors) const override {
    const float share = 1.0f / static_cast<float>(elements_);
    for (std::size_t row = 0; row < rows.count; ++row) {
      const float *const slope = grad.data + row * grad.stride, *const kept = rows.kept + row * rows.kept_stride;
      const float* const in = rows.obs.data + row * rows.obs.stride;
      for (std::size_t feature = 0; feature < features_; ++feature) {
        float* const weight =
            grad_tensors[0] == nullptr ? nullptr : grad_tensors[0] + (row * features_ + feature) * numbers_;
        float bias = 0;
        if (weight != nullptr) std::fill_n(weight, numbers_, 0.0f);
        for (std::size_t element = 0; element < elements_; ++element) {
          if (kept[element * features_ + feature] <= 0) continue;
          bias += share * slope[feature];
          for (std::size_t i = 0; weight != nullptr && i < numbers_; ++i) {
            weight[i] += share * slope[feature] * in[element * numbers_ + i];
          }
        }
        if (grad_tensors[1] != nullptr) grad_tensors[1][row * features_ + feature] = bias;
      }
    }
  }

  std::size_t sample_floats() const override { return features_ * (elements_ + numbers_); }
  std::size_t multiply_adds() const override { return 2 * elements_ * features_ * numbers_; }

 private:
  std::vector<std::string> layers_;
  std::string name_;
  std::size_t elements_, numbers_, features_;  // numbers per element, and features per element
};

const RegisteredPart<Encoder, SetEncoder> kSet{"set"};

}  // namespace
}  // namespace surefoot
