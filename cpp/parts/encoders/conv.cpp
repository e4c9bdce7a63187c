// Convolutions of an image, each followed by ReLU; the result is flattened channel by channel, then linear layers.
#include <algorithm>
#include <utility>

#include "surefoot/convolution.hpp"
#include "surefoot/parts/encoder.hpp"

namespace surefoot {
namespace {

/// Slots: the gradients of two layers' outputs, a gradient that is discarded, and those of the convolutions.
enum Slot : std::size_t { kGradient, kGradientBelow, kUnwanted, kOwn };

/// Positions of the weights in a gradient with one column per output.
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

class ConvEncoder final : public Encoder {
 public:
  ConvEncoder(const PartPlan& plan, const Kernels& kernels) : Encoder(kernels), layers_(plan.texts("layers")) {
    const std::vector<std::size_t> size = counts(plan, "size"), outputs = counts(plan, "channels"),
                                   widths = counts(plan, "kernels"), strides = counts(plan, "strides");
    const std::vector<std::string> names = plan.texts("convolutions");
    if (size.size() != 3) plan.refuse("size", "must be channels, height and width");
    for (const auto* one : {&outputs, &widths, &strides}) {
      if (one->size() != names.size()) plan.refuse("convolutions", "must have as many channels, kernels and strides");
    }
    image_ = {size[0], size[1], size[2]};
    strides_ = plan.flag("channels_last") ? image_.channels_last() : image_.channels_first();
    ImageSize in = image_;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (widths[i] > std::min(in.height, in.width)) plan.refuse("kernels", "has one that is larger than its image");
      const Convolution shape(kernels, in, outputs[i], widths[i], strides[i]);
      convolutions_.push_back({names[i], shape, widths[i], kept_size_});
      kept_size_ += shape.planes_floats() + shape.out_floats();
      in = shape.out();
    }
  }

  std::vector<std::string> layers() const override { return layers_; }

  std::optional<std::size_t> own_size(std::size_t in) const override {
    if (image_.floats() != in) throw std::invalid_argument("an image's size is not that of its observation");
    return convolutions_.empty() ? std::optional<std::size_t>() : convolutions_.back().shape.out().floats();
  }

  std::vector<EncoderTensor> tensors() const override {
    std::vector<EncoderTensor> tensors;
    for (const Layer& layer : convolutions_) {
      const std::size_t inputs = layer.shape.in().channels, outputs = layer.shape.out().channels;
      tensors.push_back({layer.name + ".weight",
                         {outputs, inputs, layer.kernel, layer.kernel},
                         places_of(layer.shape),
                         inputs * layer.kernel * layer.kernel * layer.shape.columns()});
      tensors.push_back({layer.name + ".bias", {outputs}});
    }
    return tensors;
  }

  std::size_t kept_size() const override { return kept_size_; }

  void forward(const EncoderRows& rows, float* flat, std::size_t stride) const override {
    for (std::size_t row = 0; row < rows.count; ++row) {
      const float* from = rows.obs.data + row * rows.obs.stride;
      PixelStrides strides = strides_;
      for (std::size_t i = 0; i < convolutions_.size(); ++i) {
        const Convolution& shape = convolutions_[i].shape;
        float* const planes = rows.kept + row * rows.kept_stride + convolutions_[i].kept_at;
        float* const out = planes + shape.planes_floats();
        shape.split(from, strides, planes);
        shape.forward(planes, rows.tensors[2 * i], rows.tensors[2 * i + 1], out);
        kernels_.activate(Activation::kRelu, out, shape.out_floats());
        from = out;
        strides = shape.out_strides();
      }
      const ImageSize& size = convolutions_.back().shape.out();
      copy_image(size, from, strides, flat + row * stride, size.channels_first());
    }
  }

  void backward(const EncoderRows& rows, MatrixView grad_flat, std::span<float* const> grad_tensors) const override {
    std::size_t floats = 0;
    for (const Layer& layer : convolutions_) floats = std::max(floats, layer.shape.grad_floats());
    float* grad = rows.scratch.floats(kGradient, floats);
    float* below = rows.scratch.floats(kGradientBelow, floats);
    const Scratch own{rows.scratch.workspace, rows.scratch.first + kOwn};
    for (std::size_t row = 0; row < rows.count; ++row) {
      const Convolution& last = convolutions_.back().shape;
      std::fill_n(grad, last.grad_floats(), 0.0f);
      copy_image(last.out(), grad_flat.data + row * grad_flat.stride, last.out().channels_first(),
                 grad + last.grad_origin(), last.grad_strides());
      for (std::size_t i = convolutions_.size(); i-- > 0;) {
        const Convolution& shape = convolutions_[i].shape;
        const float* const planes = rows.kept + row * rows.kept_stride + convolutions_[i].kept_at;
        const std::size_t plane = shape.out_strides().channel, used = shape.out_count();
        for (std::size_t output = 0; output < shape.out().channels; ++output) {
          float* const one = grad + shape.grad_origin() + output * shape.grad_strides().channel;
          kernels_.differentiate(Activation::kRelu, planes + shape.planes_floats() + output * plane, one, one, used);
        }
        add_weights(i, row, rows, planes, grad, grad_tensors, own);
        if (i == 0) break;
        const Convolution& before = convolutions_[i - 1].shape;
        std::fill_n(below, before.grad_floats(), 0.0f);
        shape.input_gradient(grad, rows.tensors[2 * i], own, below + before.grad_origin(), before.grad_strides());
        std::swap(grad, below);
      }
    }
  }

  std::size_t sample_floats() const override {
    std::size_t floats = 0;
    for (const Layer& layer : convolutions_) {  // without padding, which depends on the instruction set
      floats += layer.shape.in().floats() + layer.shape.out().floats() + layer.shape.num_weights();
    }
    return floats;
  }

  std::size_t multiply_adds() const override {
    std::size_t work = 0;
    for (const Layer& layer : convolutions_) work += layer.shape.multiply_adds() * (layer.kept_at == 0 ? 2 : 3);
    return work;
  }

 private:
  struct Layer {
    std::string name;
    Convolution shape;
    std::size_t kernel;
    std::size_t kept_at;  // offset of the planes, which the output follows
  };

  static std::vector<std::size_t> counts(const PartPlan& plan, const std::string& name) {
    std::vector<std::size_t> counts;
    for (const std::int64_t value : plan.integers(name)) {
      if (value < 1 || value > 1 << 20) plan.refuse(name, "must be numbers from 1 to 1048576");
      counts.push_back(static_cast<std::size_t>(value));
    }
    return counts;
  }

  /// Writes the gradient of a layer's weights and bias for one row; if only one of them is learned, the other is
  /// discarded.
  void add_weights(std::size_t i, std::size_t row, const EncoderRows& rows, const float* planes, const float* grad,
                   std::span<float* const> to, Scratch own) const {
    const Convolution& shape = convolutions_[i].shape;
    float *const weight = to[2 * i], *const bias = to[2 * i + 1];
    if (weight == nullptr && bias == nullptr) return;
    const std::size_t outputs = shape.out().channels, columns = shape.num_weights() / outputs * shape.columns();
    float* const unwanted = rows.scratch.floats(kUnwanted, columns + outputs);
    shape.weight_gradient(planes, grad, own, weight == nullptr ? unwanted : weight + row * columns,
                          bias == nullptr ? unwanted + columns : bias + row * outputs);
  }

  std::vector<std::string> layers_;
  ImageSize image_{};
  PixelStrides strides_{};
  std::vector<Layer> convolutions_;
  std::size_t kept_size_ = 0;
};

const RegisteredPart<Encoder, ConvEncoder> kConv{"conv"};

}  // namespace
}  // namespace surefoot
