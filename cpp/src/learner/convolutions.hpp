// Convolutions that learn, each followed by ReLU, and the flattened result.
#pragma once

#include <deque>

#include "network.hpp"
#include "surefoot/convolution.hpp"

namespace surefoot {

class Convolutions {
 public:
  /// Without layers, what comes in goes out. The image itself has no gradient.
  Convolutions(const Kernels& kernels, const ImagePlan& plan, const TensorReader& tensors, Wire& in);

  Wire& out() { return layers_.empty() ? *in_ : out_; }
  void bind(const TensorReader& tensors, const FlatMemory& memory);
  void reserve(std::size_t rows);
  void forward(Block block);
  void backward(Block block, Scratch scratch);

  std::deque<FreeVector>& tensors() { return tensors_; }
  std::size_t floats() const;         // that a sample takes, about
  std::size_t multiply_adds() const;  // of a sample

 private:
  struct Layer {
    Convolution shape;
    FreeVector* weight;
    FreeVector* bias;
    Matrix planes, out;  // one image a row
  };

  const Kernels& kernels_;
  Wire* in_;
  PixelStrides strides_;  // of the image
  std::deque<FreeVector> tensors_;
  std::vector<Layer> layers_;
  Matrix flat_, grad_;
  Wire out_;
};

}  // namespace surefoot
