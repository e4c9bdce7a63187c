// An encoder during learning: its own computation, then linear layers.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "network.hpp"
#include "surefoot/parts/encoder.hpp"

namespace surefoot {

class LearningEncoder {
 public:
  /// Appends its layers to `all`. The observation itself has no gradient.
  LearningEncoder(const Kernels& kernels, Activation activation, const PartPlan& plan, const TensorReader& tensors,
                  Wire& in, std::deque<Dense>& all);

  Wire& out() { return layers_->out(); }
  void bind(const TensorReader& tensors, const FlatMemory& memory);
  void reserve(std::size_t rows);
  void forward(Block block, Scratch scratch);
  void backward(Block block, Scratch scratch);

  const Encoder& encoder() const { return *encoder_; }
  std::deque<FreeVector>& tensors() { return tensors_; }
  const std::vector<TakingLayer>& layers() const { return layers_->layers(); }

 private:
  EncoderRows rows(Block block, Scratch scratch);

  std::unique_ptr<Encoder> encoder_;
  Wire* in_;
  std::optional<std::size_t> size_;  // output size of the encoder's own computation, if any
  std::deque<FreeVector> tensors_;
  std::vector<const float*> values_;  // values of these
  Matrix kept_, own_, grad_;
  Wire own_wire_;
  std::optional<Mlp> layers_;
};

}  // namespace surefoot
