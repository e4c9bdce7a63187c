// A linear layer, packed for the kernels.
#pragma once

#include <algorithm>
#include <string>

#include "surefoot/aligned.hpp"
#include "surefoot/kernels.hpp"
#include "surefoot/tensor_reader.hpp"
#include "surefoot/workspace.hpp"

namespace surefoot {

inline std::size_t rounded_up(std::size_t count, std::size_t unit) { return (count + unit - 1) / unit * unit; }

class Layer {
 public:
  /// Packs weights [out, in] and bias [out], in the layout of PyTorch.
  void pack(const Kernels& kernels, std::size_t in, std::size_t out, const float* weight, const float* bias);
  /// Packs tensors that were checked, given their two names or the prefix of `.weight` and `.bias`.
  void pack(const Kernels& kernels, const TensorReader& tensors, const std::string& weight, const std::string& bias);
  void pack(const Kernels& kernels, const TensorReader& tensors, const std::string& prefix) {
    pack(kernels, tensors, prefix + ".weight", prefix + ".bias");
  }

  /// Repacks only the outputs of one of the `panels`, after their weights changed.
  void pack_panel(std::size_t panel, const float* weight, const float* bias);
  std::size_t panels() const { return is_narrow_ ? 1 : stride_ / panel_; }
  std::size_t first_of(std::size_t panel) const { return panel * panel_; }
  std::size_t outputs_of(std::size_t panel) const {
    return is_narrow_ ? out_ : std::min(panel_, out_ - first_of(panel));
  }

  std::size_t out() const { return out_; }
  std::size_t stride() const { return stride_; }  // row stride of the result, at least `out`

  /// `out` is [rows, stride] or has a larger row stride.
  void run(const Kernels& kernels, std::size_t rows, MatrixView in, float* out, std::size_t out_stride) const;
  void run(const Kernels& kernels, std::size_t rows, MatrixView in, float* out) const {
    run(kernels, rows, in, out, stride_);
  }
  /// Writes the result to a slot of the scratch; it is valid until the slot is used again.
  MatrixView run(const Kernels& kernels, std::size_t rows, MatrixView in, Scratch scratch, std::size_t slot) const {
    float* const out = scratch.floats(slot, rows * stride_);
    run(kernels, rows, in, out);
    return {out, stride_};
  }

 private:
  std::size_t in_ = 0;
  std::size_t out_ = 0;
  std::size_t stride_ = 0;
  std::size_t panel_ = 1;       // outputs per panel
  std::size_t narrow_row_ = 0;  // padded floats per output of a narrow layer
  bool is_narrow_ = false;
  void (*transpose_panel_)(std::size_t rows, std::size_t columns, MatrixView in, float* out) = nullptr;
  AlignedFloats weight_;
  AlignedFloats bias_;
};

/// Products with the transpose of a layer's weights: gradients of the inputs from those of the outputs.
class TransposedLayer {
 public:
  TransposedLayer() = default;
  TransposedLayer(const Kernels& kernels, std::size_t in, std::size_t out, const float* weight) {
    pack(kernels, in, out, weight);
  }

  void pack(const Kernels& kernels, std::size_t in, std::size_t out, const float* weight);
  /// Repacks only some outputs, after their weights changed.
  void pack_outputs(std::size_t first, std::size_t count, const float* weight);

  std::size_t stride() const { return stride_; }  // row stride of the result, at least `in`

  /// `grad_in` is [rows, stride] or has a larger row stride; if `adds`, the product is added to it.
  void run(const Kernels& kernels, std::size_t rows, MatrixView grad_out, float* grad_in, std::size_t grad_in_stride,
           bool adds = false) const;
  void run(const Kernels& kernels, std::size_t rows, MatrixView grad_out, float* grad_in) const {
    run(kernels, rows, grad_out, grad_in, stride_);
  }

 private:
  std::size_t in_ = 0, out_ = 0, stride_ = 0, panel_ = 1;
  void (*copy_panel_)(std::size_t rows, std::size_t columns, MatrixView in, float* out) = nullptr;
  AlignedFloats weight_;
  AlignedFloats no_bias_;
};

}  // namespace surefoot
