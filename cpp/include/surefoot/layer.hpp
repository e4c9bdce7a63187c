// A linear layer, packed for the kernels.
#pragma once

#include <string>

#include "surefoot/aligned.hpp"
#include "surefoot/kernels.hpp"
#include "surefoot/tensor_reader.hpp"
#include "surefoot/workspace.hpp"

namespace surefoot {

inline std::size_t rounded_up(std::size_t count, std::size_t unit) { return (count + unit - 1) / unit * unit; }

class Layer {
 public:
  /// Take weights [out, in] and bias [out] as the learner has them.
  void pack(const Kernels& kernels, std::size_t in, std::size_t out, const float* weight, const float* bias);
  /// The same of tensors that were checked, by their names or by the prefix of `.weight` and `.bias`.
  void pack(const Kernels& kernels, const TensorReader& tensors, const std::string& weight, const std::string& bias);
  void pack(const Kernels& kernels, const TensorReader& tensors, const std::string& prefix) {
    pack(kernels, tensors, prefix + ".weight", prefix + ".bias");
  }

  std::size_t out() const { return out_; }
  std::size_t stride() const { return stride_; }  // from row to row of the result, at least `out`

  /// `out` is [rows, stride].
  void run(const Kernels& kernels, std::size_t rows, MatrixView in, float* out) const;
  /// The same into a slot, where the result stands until the slot is used again.
  MatrixView run(const Kernels& kernels, std::size_t rows, MatrixView in, Scratch scratch, std::size_t slot) const {
    float* const out = scratch.floats(slot, rows * stride_);
    run(kernels, rows, in, out);
    return {out, stride_};
  }

 private:
  void pack_panels(std::size_t panel, const float* weight);

  std::size_t in_ = 0;
  std::size_t out_ = 0;
  std::size_t stride_ = 0;
  bool is_narrow_ = false;
  AlignedFloats weight_;
  AlignedFloats bias_;
};

/// Products with the transpose of a layer's weights: gradients of its inputs from those of its outputs.
class TransposedLayer {
 public:
  TransposedLayer(const Kernels& kernels, std::size_t in, std::size_t out, const float* weight);

  std::size_t stride() const { return stride_; }  // from row to row of the result, at least `in`

  /// `grad_in` is [rows, stride].
  void run(std::size_t rows, MatrixView grad_out, float* grad_in) const;

 private:
  const Kernels& kernels_;
  std::size_t in_, out_, stride_;
  AlignedFloats weight_, no_bias_;
};

}  // namespace surefoot
