// A linear layer, packed for the kernels.
#pragma once

#include "aligned.hpp"
#include "surefoot/kernels.hpp"

namespace surefoot {

class Layer {
 public:
  /// Take weights [out, in] and bias [out] as the learner has them.
  void pack(const Kernels& kernels, std::size_t in, std::size_t out, const float* weight, const float* bias);

  std::size_t out() const { return out_; }
  std::size_t stride() const { return stride_; }  // from row to row of the result, at least `out`

  /// `out` is [rows, stride].
  void run(const Kernels& kernels, std::size_t rows, MatrixView in, float* out) const;

 private:
  void pack_panels(std::size_t panel, const float* weight);

  std::size_t in_ = 0;
  std::size_t out_ = 0;
  std::size_t stride_ = 0;
  bool is_narrow_ = false;
  AlignedFloats weight_;
  AlignedFloats bias_;
};

}  // namespace surefoot
