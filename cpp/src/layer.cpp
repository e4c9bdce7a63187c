#include "surefoot/layer.hpp"

#include <algorithm>

namespace surefoot {

void Layer::pack(const Kernels& kernels, std::size_t in, std::size_t out, const float* weight, const float* bias) {
  if (in != in_ || out != out_) {
    // Clear first: padding of the old sizes may overlap weights of the new ones.
    weight_.resize(0);
    bias_.resize(0);
  }
  in_ = in;
  out_ = out;
  is_narrow_ = out <= kNarrowOutputs;
  panel_ = kernels.panel;
  transpose_panel_ = kernels.transpose_panel;
  stride_ = is_narrow_ ? out : rounded_up(out, panel_);
  narrow_row_ = rounded_up(in, kNarrowLanes);
  bias_.resize(stride_);
  weight_.resize(is_narrow_ ? out * narrow_row_ : in * stride_);
  for (std::size_t panel = 0; panel < panels(); ++panel) pack_panel(panel, weight, bias);
}

void Layer::pack(const Kernels& kernels, const TensorReader& tensors, const std::string& weight_name,
                 const std::string& bias_name) {
  const NamedTensor& weight = tensors[weight_name];
  pack(kernels, weight.shape[1], weight.shape[0], weight.data, tensors[bias_name].data);
}

void Layer::pack_panel(std::size_t panel, const float* weight, const float* bias) {
  const std::size_t first = first_of(panel), columns = outputs_of(panel);
  std::copy_n(bias + first, columns, bias_.data() + first);
  if (is_narrow_) {
    for (std::size_t i = 0; i < out_; ++i) std::copy_n(weight + i * in_, in_, weight_.data() + i * narrow_row_);
    return;
  }
  transpose_panel_(columns, in_, {weight + first * in_, in_}, weight_.data() + first * in_);
}

void Layer::run(const Kernels& kernels, std::size_t rows, MatrixView in, float* out, std::size_t out_stride) const {
  const PackedLayer packed{in_, out_, weight_.data(), bias_.data()};
  (is_narrow_ ? kernels.linear_narrow : kernels.linear)(packed, rows, in, out, out_stride);
}

void TransposedLayer::pack(const Kernels& kernels, std::size_t in, std::size_t out, const float* weight) {
  in_ = in;
  out_ = out;
  panel_ = kernels.panel;
  copy_panel_ = kernels.copy_panel;
  stride_ = rounded_up(in, panel_);
  weight_.resize(out * stride_);
  no_bias_.resize(stride_);
  pack_outputs(0, out, weight);
}

void TransposedLayer::pack_outputs(std::size_t first, std::size_t count, const float* weight) {
  for (std::size_t column = 0; column < in_; column += panel_) {
    const std::size_t columns = std::min(panel_, in_ - column);
    float* const panel = weight_.data() + column * out_;
    copy_panel_(count, columns, {weight + first * in_ + column, in_}, panel + first * panel_);
  }
}

void TransposedLayer::run(const Kernels& kernels, std::size_t rows, MatrixView grad_out, float* grad_in,
                          std::size_t grad_in_stride, bool adds) const {
  kernels.linear({out_, in_, weight_.data(), adds ? nullptr : no_bias_.data()}, rows, grad_out, grad_in,
                 grad_in_stride);
}

}  // namespace surefoot
