#include "convolutions.hpp"

#include <algorithm>

namespace surefoot {

namespace {

/// Slots of the gradients of two layers' outputs, and those of the convolutions themselves.
enum Slot : std::size_t { kGradient, kGradientBelow, kOwn };

/// Where the weights are in a gradient that has one column an output.
std::vector<std::uint32_t> places_of(const Convolution& shape) {
  const std::size_t outputs = shape.out().channels, terms = shape.num_weights() / outputs;
  std::vector<std::uint32_t> places;
  for (std::size_t output = 0; output < outputs; ++output) {
    for (std::size_t term = 0; term < terms; ++term) {
      places.push_back(static_cast<std::uint32_t>(term * shape.columns() + output));
    }
  }
  return places;
}

Matrix row_of(std::size_t floats) { return {floats, floats}; }

}  // namespace

Convolutions::Convolutions(const Kernels& kernels, const ImagePlan& plan, const TensorReader& tensors, Wire& in)
    : kernels_(kernels), in_(&in), strides_(plan.strides()) {
  ImageSize size = plan.size;
  for (const ConvolutionPlan& layer : plan.layers) {
    const std::size_t outputs = tensors[layer.layer + ".weight"].shape[0];
    const Convolution shape(kernels, size, outputs, layer.kernel, layer.stride);
    std::vector<std::uint32_t> places = places_of(shape);
    const std::size_t columns = places.size() / outputs * shape.columns();
    FreeVector& weight = tensors_.emplace_back(layer.layer + ".weight", columns, std::move(places));
    FreeVector& bias = tensors_.emplace_back(layer.layer + ".bias", outputs);
    layers_.push_back({shape, &weight, &bias, row_of(shape.planes_floats()), row_of(shape.out_floats())});
    size = shape.out();
  }
  const std::size_t padded = rounded_up(size.floats(), kernels.panel);
  flat_ = Matrix(size.floats(), padded);
  grad_ = Matrix(size.floats(), padded);
  out_ = {&flat_, &grad_};
}

void Convolutions::bind(const TensorReader& tensors, const FlatMemory& memory) {
  for (FreeVector& tensor : tensors_) tensor.parameter.bind(tensors, memory);
}

void Convolutions::reserve(std::size_t rows) {
  for (FreeVector& tensor : tensors_) tensor.grad.reserve(rows);
  for (Layer& layer : layers_) {
    layer.planes.reserve(rows);
    layer.out.reserve(rows);
  }
  if (layers_.empty()) return;
  flat_.reserve(rows);
  grad_.reserve(rows);
}

std::size_t Convolutions::floats() const {
  std::size_t floats = 0;
  for (const Layer& layer : layers_) {
    // Without the padding, which depends on the instruction set: samples must be divided alike everywhere.
    floats += layer.shape.in().floats() + layer.shape.out().floats() + layer.shape.num_weights();
  }
  return floats;
}

std::size_t Convolutions::multiply_adds() const {
  std::size_t work = 0;
  for (const Layer& layer : layers_) work += layer.shape.multiply_adds() * (&layer == layers_.data() ? 2 : 3);
  return work;
}

void Convolutions::forward(Block block) {
  if (layers_.empty()) return;
  for (std::size_t row = block.first; row < block.first + block.count; ++row) {
    const float* from = in_->value->row(row);
    PixelStrides strides = strides_;
    for (Layer& layer : layers_) {
      float* const out = layer.out.row(row);
      layer.shape.split(from, strides, layer.planes.row(row));
      layer.shape.forward(layer.planes.row(row), layer.weight->parameter.value, layer.bias->parameter.value, out);
      kernels_.activate(Activation::kRelu, out, layer.shape.out_floats());
      from = out;
      strides = layer.shape.out_strides();
    }
    const ImageSize& size = layers_.back().shape.out();
    copy_image(size, from, strides, flat_.row(row), size.channels_first());
  }
}

void Convolutions::backward(Block block, Scratch scratch) {
  if (layers_.empty()) return;
  std::size_t floats = 0;
  for (const Layer& layer : layers_) floats = std::max(floats, layer.shape.grad_floats());
  float* grad = scratch.floats(kGradient, floats);
  float* below = scratch.floats(kGradientBelow, floats);
  const Scratch own{scratch.workspace, scratch.first + kOwn};
  for (std::size_t row = block.first; row < block.first + block.count; ++row) {
    const Convolution& last = layers_.back().shape;
    std::fill_n(grad, last.grad_floats(), 0.0f);
    copy_image(last.out(), grad_.row(row), last.out().channels_first(), grad + last.grad_origin(), last.grad_strides());
    for (std::size_t i = layers_.size(); i-- > 0;) {
      Layer& layer = layers_[i];
      const Convolution& shape = layer.shape;
      const std::size_t plane = shape.out_strides().channel, used = shape.out_count();
      for (std::size_t output = 0; output < shape.out().channels; ++output) {
        float* const one = grad + shape.grad_origin() + output * shape.grad_strides().channel;
        kernels_.differentiate(Activation::kRelu, layer.out.row(row) + output * plane, one, one, used);
      }
      if (layer.weight->parameter.learns || layer.bias->parameter.learns) {
        shape.weight_gradient(layer.planes.row(row), grad, own, layer.weight->grad.row(row), layer.bias->grad.row(row));
      }
      if (i == 0) break;
      const Convolution& before = layers_[i - 1].shape;
      std::fill_n(below, before.grad_floats(), 0.0f);
      shape.input_gradient(grad, layer.weight->parameter.value, own, below + before.grad_origin(),
                           before.grad_strides());
      std::swap(grad, below);
    }
  }
}

}  // namespace surefoot
