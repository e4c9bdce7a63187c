#include "surefoot/convolution.hpp"

#include <algorithm>

#include "surefoot/layer.hpp"

namespace surefoot {

namespace {

enum Slot : std::size_t { kPlanes, kTransposed };

/// Number of pixels that are transposed together, chosen so that the output stays in the first-level cache.
constexpr std::size_t kTransposedPixels = 16;

/// Copies every n-th of the floats at `from`.
template <std::size_t Step>
void take(const float* from, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i * Step];
}

void take(const float* from, std::size_t step, std::size_t count, float* to) {
  switch (step) {
    case 1:
      return take<1>(from, count, to);
    case 2:
      return take<2>(from, count, to);
    case 4:
      return take<4>(from, count, to);
    default:
      for (std::size_t i = 0; i < count; ++i) to[i] = from[i * step];
  }
}

}  // namespace

Convolution::Convolution(const Kernels& kernels, ImageSize in, std::size_t outputs, std::size_t kernel,
                         std::size_t stride)
    : kernels_(&kernels),
      in_(in),
      out_{outputs, (in.height - kernel) / stride + 1, (in.width - kernel) / stride + 1},
      kernel_(kernel),
      stride_(stride),
      phases_(std::min(kernel, stride)),
      plane_height_((in.height + stride - 1) / stride),
      plane_width_((in.width + stride - 1) / stride),
      out_count_((out_.height - 1) * plane_width_ + out_.width),
      out_plane_(rounded_up(out_count_, kernels.panel)),
      columns_(rounded_up(outputs, kernels.panel)) {
  const std::size_t plane = plane_height_ * plane_width_;
  planes_floats_ = rounded_up(in.channels * phases_ * phases_ * plane + kernels.panel, kernels.panel);
  const auto shift = [&](std::size_t y, std::size_t x) { return y / stride * plane_width_ + x / stride; };
  for (std::size_t channel = 0; channel < in.channels; ++channel) {
    for (std::size_t y = 0; y < kernel; ++y) {
      for (std::size_t x = 0; x < kernel; ++x) {
        const std::size_t phase = (channel * phases_ + y % stride) * phases_ + x % stride;
        weight_at_.push_back(static_cast<std::uint32_t>(at_.size()));
        at_.push_back(static_cast<std::uint32_t>(phase * plane + shift(y, x)));
      }
    }
  }
  // The gradient of an output has as many zeros before and after it as the kernel reaches.
  grad_origin_ = shift(kernel - 1, kernel - 1);
  grad_plane_ = rounded_up(plane, kernels.panel) + grad_origin_;
  for (std::size_t row = 0; row < phases_; ++row) {
    for (std::size_t column = 0; column < phases_; ++column) {
      Phase& phase = back_.emplace_back(Phase{row, column, {}, {}});
      for (std::size_t output = 0; output < outputs; ++output) {
        for (std::size_t y = row; y < kernel; y += stride) {
          for (std::size_t x = column; x < kernel; x += stride) {
            const std::size_t origin = grad_origin_ + output * grad_plane_;
            phase.at.push_back(static_cast<std::uint32_t>(origin - shift(y, x)));
            phase.weight_at.push_back(static_cast<std::uint32_t>(output * at_.size() + y * kernel + x));
          }
        }
      }
    }
  }
}

/// Calls `function(offset, count, plane)` for each range of a row that is in one plane.
template <class Function>
void Convolution::each_row(Function function) const {
  const std::size_t plane = plane_height_ * plane_width_;
  for (std::size_t row = 0; row < phases_; ++row) {
    for (std::size_t column = 0; column < phases_; ++column) {
      const std::size_t count = (in_.width - column + stride_ - 1) / stride_;
      for (std::size_t y = row; y < in_.height; y += stride_) {
        function(y, column, count, (row * phases_ + column) * plane + y / stride_ * plane_width_);
      }
    }
  }
}

void Convolution::split(const float* image, PixelStrides strides, float* planes) const {
  const std::size_t floats = phases_ * phases_ * plane_height_ * plane_width_;
  for (std::size_t channel = 0; channel < in_.channels; ++channel) {
    const float* const from = image + channel * strides.channel;
    float* const to = planes + channel * floats;
    each_row([&](std::size_t y, std::size_t x, std::size_t count, std::size_t place) {
      take(from + y * strides.row + x * strides.column, stride_ * strides.column, count, to + place);
    });
  }
}

void Convolution::forward(const float* planes, const float* weight, const float* bias, float* out) const {
  kernels_->shifted_sums({.rows = out_.channels,
                          .terms = at_.size(),
                          .count = out_count_,
                          .weight = weight,
                          .weight_stride = at_.size(),
                          .weight_at = weight_at_.data(),
                          .in = planes,
                          .at = at_.data(),
                          .start = bias},
                         out, out_plane_);
}

void Convolution::input_gradient(const float* grad, const float* weight, Scratch scratch, float* image,
                                 PixelStrides strides) const {
  const std::size_t plane = plane_height_ * plane_width_, padded = rounded_up(plane, kernels_->panel);
  const std::size_t phases = back_.size();
  float* const sums = scratch.floats(kPlanes, in_.channels * (phases * padded + 1));
  float* const zeros = sums + in_.channels * phases * padded;
  std::fill_n(zeros, in_.channels, 0.0f);
  for (std::size_t i = 0; i < phases; ++i) {
    kernels_->shifted_sums({.rows = in_.channels,
                            .terms = back_[i].at.size(),
                            .count = plane,
                            .weight = weight,
                            .weight_stride = kernel_ * kernel_,
                            .weight_at = back_[i].weight_at.data(),
                            .in = grad,
                            .at = back_[i].at.data(),
                            .start = zeros},
                           sums + i * padded, phases * padded);
  }
  for (std::size_t channel = 0; channel < in_.channels; ++channel) {
    float* const to = image + channel * strides.channel;
    for (const Phase& phase : back_) {
      const float* from = sums + (channel * phases + static_cast<std::size_t>(&phase - back_.data())) * padded;
      for (std::size_t y = phase.row; y < in_.height; y += stride_, from += plane_width_) {
        float* const row = to + y * strides.row;
        for (std::size_t x = phase.column, i = 0; x < in_.width; x += stride_, ++i) row[x * strides.column] += from[i];
      }
    }
  }
}

void Convolution::weight_gradient(const float* planes, const float* grad, Scratch scratch, float* grad_weight,
                                  float* grad_bias) const {
  float* const transposed = scratch.floats(kTransposed, out_count_ * columns_);
  for (std::size_t first = 0; first < out_count_; first += kTransposedPixels) {
    const std::size_t end = std::min(first + kTransposedPixels, out_count_);
    for (std::size_t output = 0; output < columns_; ++output) {
      const float* const from = grad + grad_origin_ + output * grad_plane_;
      for (std::size_t i = first; i < end; ++i)
        transposed[i * columns_ + output] = output < out_.channels ? from[i] : 0;
    }
  }
  std::vector<double> sums(out_.channels);
  kernels_->column_sums(out_count_, out_.channels, {transposed, columns_}, sums.data());
  for (std::size_t output = 0; output < out_.channels; ++output) grad_bias[output] = static_cast<float>(sums[output]);
  kernels_->shifted_products({.terms = at_.size(),
                              .count = out_count_,
                              .columns = out_.channels,
                              .in = planes,
                              .at = at_.data(),
                              .by = {transposed, columns_}},
                             grad_weight, columns_);
}

void copy_image(const ImageSize& size, const float* from, PixelStrides from_strides, float* to,
                PixelStrides to_strides) {
  for (std::size_t channel = 0; channel < size.channels; ++channel) {
    for (std::size_t y = 0; y < size.height; ++y) {
      const float* const source = from + channel * from_strides.channel + y * from_strides.row;
      float* const row = to + channel * to_strides.channel + y * to_strides.row;
      for (std::size_t x = 0; x < size.width; ++x) row[x * to_strides.column] = source[x * from_strides.column];
    }
  }
}

}  // namespace surefoot
