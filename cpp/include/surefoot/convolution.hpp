// A convolution without padding, as torch's Conv2d has it, and its gradients, one image at a time.
//
// Images lie as planes: of each channel one plane for each phase of the stride, so that the pixels that one weight
// meets are neighbors. Outputs lie in rows as wide as a plane's; the last pixels of a row are of no use.
#pragma once

#include <cstdint>
#include <vector>

#include "surefoot/kernels.hpp"
#include "surefoot/workspace.hpp"

namespace surefoot {

/// How an image lies: floats from one channel, row and column to the next.
struct PixelStrides {
  std::size_t channel, row, column;
};

/// An image's size.
struct ImageSize {
  std::size_t channels, height, width;

  std::size_t floats() const { return channels * height * width; }
  PixelStrides channels_first() const { return {height * width, width, 1}; }
  PixelStrides channels_last() const { return {1, width * channels, channels}; }
};

class Convolution {
 public:
  /// The kernel must fit into the image.
  Convolution(const Kernels& kernels, ImageSize in, std::size_t outputs, std::size_t kernel, std::size_t stride);

  const ImageSize& in() const { return in_; }
  const ImageSize& out() const { return out_; }
  std::size_t num_weights() const { return out_.channels * at_.size(); }  // [outputs, channels, kernel, kernel]
  std::size_t multiply_adds() const { return num_weights() * out_.height * out_.width; }

  std::size_t planes_floats() const { return planes_floats_; }
  std::size_t out_count() const { return out_count_; }  // of pixels in a channel, with the useless ones
  std::size_t out_floats() const { return out_.channels * out_plane_; }
  /// How the output of `forward` lies.
  PixelStrides out_strides() const { return {out_plane_, plane_width_, 1}; }

  /// An image as planes. What lies between the pixels is left as it is; it must be finite.
  void split(const float* image, PixelStrides strides, float* planes) const;
  void forward(const float* planes, const float* weight, const float* bias, float* out) const;

  std::size_t grad_floats() const { return grad_origin_ + out_.channels * grad_plane_; }
  /// Where the gradient of the output lies in `grad_floats`, which are zero everywhere else.
  std::size_t grad_origin() const { return grad_origin_; }
  PixelStrides grad_strides() const { return {grad_plane_, plane_width_, 1}; }

  /// The gradient of the image, added to what is at `image`.
  void input_gradient(const float* grad, const float* weight, Scratch scratch, float* image,
                      PixelStrides strides) const;

  /// The gradients of weights and bias: [channels * kernel * kernel, columns] and [outputs].
  std::size_t columns() const { return columns_; }
  void weight_gradient(const float* planes, const float* grad, Scratch scratch, float* grad_weight,
                       float* grad_bias) const;

 private:
  /// The planes of one phase, as the way back fills them: terms of the sum for each of its pixels.
  struct Phase {
    std::size_t row, column;
    std::vector<std::uint32_t> at, weight_at;
  };

  template <class Function>
  void each_row(Function function) const;

  const Kernels* kernels_;
  ImageSize in_, out_;
  std::size_t kernel_, stride_;
  std::size_t phases_;                      // of rows, and as many of columns
  std::size_t plane_height_, plane_width_;  // of a phase
  std::size_t planes_floats_;
  std::size_t out_count_, out_plane_;  // pixels of an output, with the useless ones; the same in whole panels
  std::size_t grad_origin_, grad_plane_;
  std::size_t columns_;
  std::vector<std::uint32_t> at_, weight_at_;
  std::vector<Phase> back_;
};

/// Copy an image.
void copy_image(const ImageSize& size, const float* from, PixelStrides from_strides, float* to,
                PixelStrides to_strides);

}  // namespace surefoot
