// A convolution without padding and its gradients, one image at a time; the result is that of torch's Conv2d.
//
// Images are stored as planes: each channel has one plane per phase of the stride, so that the pixels that one weight
// is multiplied with are contiguous. Output rows are as wide as the rows of a plane; the last pixels of each are
// unused.
#pragma once

#include <cstdint>
#include <vector>

#include "surefoot/kernels.hpp"
#include "surefoot/workspace.hpp"

namespace surefoot {

/// Memory layout of an image: the distance in floats between neighboring channels, rows and columns.
struct PixelStrides {
  std::size_t channel, row, column;
};

/// Size of an image.
struct ImageSize {
  std::size_t channels, height, width;

  std::size_t floats() const { return channels * height * width; }
  PixelStrides channels_first() const { return {height * width, width, 1}; }
  PixelStrides channels_last() const { return {1, width * channels, channels}; }
};

class Convolution {
 public:
  /// The kernel must not be larger than the image.
  Convolution(const Kernels& kernels, ImageSize in, std::size_t outputs, std::size_t kernel, std::size_t stride);

  const ImageSize& in() const { return in_; }
  const ImageSize& out() const { return out_; }
  std::size_t num_weights() const { return out_.channels * at_.size(); }  // [outputs, channels, kernel, kernel]
  std::size_t multiply_adds() const { return num_weights() * out_.height * out_.width; }

  std::size_t planes_floats() const { return planes_floats_; }
  std::size_t out_count() const { return out_count_; }  // pixels per channel, including the unused ones
  std::size_t out_floats() const { return out_.channels * out_plane_; }
  /// Layout of the output of `forward`.
  PixelStrides out_strides() const { return {out_plane_, plane_width_, 1}; }

  /// Splits an image into planes. The gaps between the pixels are not written; they must contain finite numbers.
  void split(const float* image, PixelStrides strides, float* planes) const;
  void forward(const float* planes, const float* weight, const float* bias, float* out) const;

  std::size_t grad_floats() const { return grad_origin_ + out_.channels * grad_plane_; }
  /// Offset of the output's gradient in a buffer of `grad_floats` floats, which must be zero everywhere else.
  std::size_t grad_origin() const { return grad_origin_; }
  PixelStrides grad_strides() const { return {grad_plane_, plane_width_, 1}; }

  /// Adds the gradient with respect to the image to `image`.
  void input_gradient(const float* grad, const float* weight, Scratch scratch, float* image,
                      PixelStrides strides) const;

  /// Gradients of weights and bias: [channels * kernel * kernel, columns] and [outputs].
  std::size_t columns() const { return columns_; }
  void weight_gradient(const float* planes, const float* grad, Scratch scratch, float* grad_weight,
                       float* grad_bias) const;

 private:
  /// The planes of one phase in the backward pass: for each pixel, the terms of its sum.
  struct Phase {
    std::size_t row, column;
    std::vector<std::uint32_t> at, weight_at;
  };

  template <class Function>
  void each_row(Function function) const;

  const Kernels* kernels_;
  ImageSize in_, out_;
  std::size_t kernel_, stride_;
  std::size_t phases_;                      // phases of rows; there are as many of columns
  std::size_t plane_height_, plane_width_;  // size of the plane of one phase
  std::size_t planes_floats_;
  std::size_t out_count_,
      out_plane_;  // pixels per output channel, including unused ones; the same rounded up to whole panels
  std::size_t grad_origin_, grad_plane_;
  std::size_t columns_;
  std::vector<std::uint32_t> at_, weight_at_;
  std::vector<Phase> back_;
};

/// Copies an image from one layout to another.
void copy_image(const ImageSize& size, const float* from, PixelStrides from_strides, float* to,
                PixelStrides to_strides);

}  // namespace surefoot
