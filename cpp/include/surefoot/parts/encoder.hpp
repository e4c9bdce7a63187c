// An encoder: rows of one observation to features. What it computes itself comes first, then linear layers if it names
// any.
#pragma once

#include <optional>

#include "surefoot/parts/part.hpp"

namespace surefoot {

/// A tensor that an encoder computes from by itself.
struct EncoderTensor {
  std::string name;
  std::vector<std::size_t> shape;
  /// The column of a row's gradient that each element has, of `columns`; empty: in order.
  std::vector<std::uint32_t> places{};
  std::size_t columns = 0;
};

/// Rows of an observation on their way through an encoder.
struct EncoderRows {
  std::size_t count;
  MatrixView obs;                         // normalized
  std::span<const float* const> tensors;  // as they are now, in the order of `Encoder::tensors`
  float* kept;                            // [count, kept_size] for the way back; zeros at first
  std::size_t kept_stride;                // 0 where there is no way back: rows use the same floats, one after the other
  Scratch scratch;
};

/// Made from its plan; what it gives for a row depends on nothing but that row. Python's encoder is its reference.
class Encoder {
 public:
  explicit Encoder(const Kernels& kernels) : kernels_(kernels) {}
  virtual ~Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;

  /// Linear layers that end it, by the prefix of `.weight` and `.bias`, each followed by the policy's activation.
  /// Policy and learner run them.
  virtual std::vector<std::string> layers() const { return {}; }

  /// Numbers a row that it computes for observations of `in`, before the layers; none: the layers take observations as
  /// they are. Throws std::invalid_argument if it cannot take observations of that size.
  virtual std::optional<std::size_t> own_size(std::size_t /*in*/) const { return {}; }
  /// Tensors that it computes these from.
  virtual std::vector<EncoderTensor> tensors() const { return {}; }
  /// Numbers a row that the way back needs.
  virtual std::size_t kept_size() const { return 0; }
  /// Rows of `out` are `stride` apart.
  virtual void forward(const EncoderRows&, float* /*out*/, std::size_t /*stride*/) const {}
  /// From the gradient of what `forward` gave to that of each tensor, row by row: [count, columns]; null: not learned.
  virtual void backward(const EncoderRows&, MatrixView /*grad*/, std::span<float* const> /*grad_tensors*/) const {}

  /// Floats that a sample takes, if that is much: samples are then learned from in smaller pieces. It must not depend
  /// on the instruction set.
  virtual std::size_t sample_floats() const { return 0; }
  /// Multiply-adds of a sample forward and back, to tell how many threads pay off.
  virtual std::size_t multiply_adds() const { return 0; }

 protected:
  const Kernels& kernels_;
};

}  // namespace surefoot
