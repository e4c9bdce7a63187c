#include "surefoot/layer.hpp"

#include <algorithm>

namespace surefoot {

namespace {

/// Inputs packed before the next column is begun, so that what is being written stays in the first-level cache.
constexpr std::size_t kPackedInputs = 64;

}  // namespace

void Layer::pack(const Kernels& kernels, std::size_t in, std::size_t out, const float* weight, const float* bias) {
  if (in != in_ || out != out_) {
    // The padding of the old sizes may lie where the new ones have none.
    weight_.resize(0);
    bias_.resize(0);
  }
  in_ = in;
  out_ = out;
  is_narrow_ = out <= kNarrowOutputs;
  stride_ = is_narrow_ ? out : rounded_up(out, kernels.panel);
  bias_.resize(stride_);
  std::copy_n(bias, out, bias_.data());
  if (is_narrow_) {
    const std::size_t row = rounded_up(in, kNarrowLanes);
    weight_.resize(out * row);
    for (std::size_t i = 0; i < out; ++i) std::copy_n(weight + i * in, in, weight_.data() + i * row);
  } else {
    weight_.resize(in * stride_);
    pack_panels(kernels.panel, weight);
  }
}

void Layer::pack(const Kernels& kernels, const TensorReader& tensors, const std::string& weight_name,
                 const std::string& bias_name) {
  const NamedTensor& weight = tensors[weight_name];
  pack(kernels, weight.shape[1], weight.shape[0], weight.data, tensors[bias_name].data);
}

void Layer::pack_panels(std::size_t panel, const float* weight) {
  for (std::size_t first = 0; first < out_; first += panel) {
    float* const to = weight_.data() + first * in_;
    const std::size_t columns = std::min(panel, out_ - first);
    for (std::size_t begin = 0; begin < in_; begin += kPackedInputs) {
      const std::size_t end = std::min(begin + kPackedInputs, in_);
      for (std::size_t column = 0; column < columns; ++column) {
        const float* const from = weight + (first + column) * in_;
        for (std::size_t k = begin; k < end; ++k) to[k * panel + column] = from[k];
      }
    }
  }
}

void Layer::run(const Kernels& kernels, std::size_t rows, MatrixView in, float* out) const {
  const PackedLayer packed{in_, out_, weight_.data(), bias_.data()};
  (is_narrow_ ? kernels.linear_narrow : kernels.linear)(packed, rows, in, out, stride_);
}

TransposedLayer::TransposedLayer(const Kernels& kernels, std::size_t in, std::size_t out, const float* weight)
    : kernels_(kernels), in_(in), out_(out), stride_(rounded_up(in, kernels.panel)) {
  weight_.resize(out * stride_);
  no_bias_.resize(stride_);
  for (std::size_t first = 0; first < in; first += kernels.panel) {
    const std::size_t columns = std::min(kernels.panel, in - first);
    float* const panel = weight_.data() + first * out;
    for (std::size_t k = 0; k < out; ++k) std::copy_n(weight + k * in + first, columns, panel + k * kernels.panel);
  }
}

void TransposedLayer::run(std::size_t rows, MatrixView grad_out, float* grad_in) const {
  kernels_.linear({out_, in_, weight_.data(), no_bias_.data()}, rows, grad_out, grad_in, stride_);
}

}  // namespace surefoot
