// An encoder: maps one observation to features. Its own computation comes first, followed by linear layers if it names
// any.
#pragma once

#include <optional>

#include "surefoot/parts/part.hpp"

namespace surefoot {

/// A tensor that an encoder uses in its own computation.
struct EncoderTensor {
  std::string name;
  std::vector<std::size_t> shape;
  /// For each element, its column among the `columns` of a row's gradient; empty: in order.
  std::vector<std::uint32_t> places{};
  std::size_t columns = 0;
};

/// Arguments of an encoder: rows of an observation.
struct EncoderRows {
  std::size_t count;
  MatrixView obs;                         // normalized
  std::span<const float* const> tensors;  // current values, in the order of `Encoder::tensors`
  float* kept;                            // [count, kept_size] for the backward pass; initially zero
  std::size_t kept_stride;  // row stride of `kept`; 0 without a backward pass: all rows then reuse the buffer
  Scratch scratch;
};

/// Base class of encoders, which are created from a plan. The features of a row depend only on that row. The Python
/// encoder of the same kind is the reference.
class Encoder : public KernelUser {
 public:
  using KernelUser::KernelUser;

  /// Linear layers after the encoder's own computation, by the prefix of `.weight` and `.bias`, each followed by the
  /// policy's activation. Policy and learner run them.
  virtual std::vector<std::string> layers() const { return {}; }

  /// Output size of the encoder's own computation for observations of size `in`; none if the layers take the
  /// observations directly. Throws std::invalid_argument if it does not support that size.
  virtual std::optional<std::size_t> own_size(std::size_t /*in*/) const { return {}; }
  /// Tensors that its own computation uses.
  virtual std::vector<EncoderTensor> tensors() const { return {}; }
  /// Floats per row that `forward` keeps for `backward`.
  virtual std::size_t kept_size() const { return 0; }
  /// Runs its own computation; rows of `out` are `stride` apart.
  virtual void forward(const EncoderRows&, float* /*out*/, std::size_t /*stride*/) const {}
  /// Maps the gradient of the output of `forward` to that of each tensor, row by row: [count, columns]; null for
  /// tensors that are not learned.
  virtual void backward(const EncoderRows&, MatrixView /*grad*/, std::span<float* const> /*grad_tensors*/) const {}

  /// Floats per sample, if there are many: the learner then uses smaller pieces. Must not depend on the instruction
  /// set.
  virtual std::size_t sample_floats() const { return 0; }
  /// Multiply-adds per sample in forward and backward pass, to decide how many threads to use.
  virtual std::size_t multiply_adds() const { return 0; }
};

}  // namespace surefoot
