// The building blocks of networks during learning: layers between matrices, and their backward pass.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "dense.hpp"
#include "surefoot/parts/memory.hpp"

namespace surefoot {

/// The output of one network and the input of others. Its gradient is the sum of theirs.
struct Wire {
  Matrix* value = nullptr;
  Matrix* grad = nullptr;  // null: nothing before it is learned
  bool is_claimed = false;

  /// Registers a user of the gradient and returns whether it must add; in the order of the backward pass, all but the
  /// first add to it.
  bool claim() { return std::exchange(is_claimed, true); }
};

/// A range of samples of a piece.
struct Block {
  std::size_t first, count;
};

/// A layer and its input wire.
struct TakingLayer {
  Dense* layer;
  Wire* in;
  bool adds;  // whether it adds to the gradient of the wire

  TakingLayer(Dense& dense, Wire& wire);

  void forward(Block block) const { layer->forward(block.first, block.count, in->value->view(block.first)); }
  void backward(Block block) const {
    if (in->grad != nullptr) layer->backward(block.first, block.count, *in->grad, adds);
  }
};

/// Linear layers, each followed by the activation.
class Mlp {
 public:
  /// Appends its layers to `all`.
  Mlp(const Kernels& kernels, Activation activation, const MlpPlan& plan, const TensorReader& tensors, Wire& in,
      std::deque<Dense>& all);

  Wire& out() { return layers_.empty() ? *in_ : out_; }
  void reserve(std::size_t rows);
  void forward(Block block);
  void backward(Block block);

  const std::vector<TakingLayer>& layers() const { return layers_; }

 private:
  const Kernels& kernels_;
  Activation activation_;
  Wire* in_;
  std::deque<Wire> between_;
  std::vector<TakingLayer> layers_;
  std::vector<Matrix> before_;  // inputs of activations whose derivative cannot be computed from the output
  Wire out_;
};

/// A concatenation of wires.
class Concat {
 public:
  Concat(const Kernels& kernels, std::vector<Wire*> inputs);

  Wire& out() { return inputs_.size() == 1 ? *inputs_[0] : out_; }
  void reserve(std::size_t rows);
  void forward(Block block);
  void backward(Block block);

 private:
  std::vector<Wire*> inputs_;
  std::vector<bool> adds_;
  Matrix value_, grad_;
  Wire out_;
};

/// Layers of recurrent cells over packed sequences.
class Cells {
 public:
  Cells(const Kernels& kernels, const Memory& memory, Wire& in, std::deque<Dense>& all);

  Wire& out() { return layers_.empty() ? *in_ : out_; }
  std::size_t num_layers() const { return layers_.size(); }
  std::size_t num_tensors() const;
  std::size_t hidden() const;
  void reserve(std::size_t rows, std::size_t sequences);

  /// A tensor of the initial state of each sequence, one row [H] per sequence.
  float* before(std::size_t layer, std::size_t tensor) { return layers_[layer].before[tensor].floats.data(); }
  /// The state after each step, one row per sample.
  const float* states(std::size_t layer, std::size_t tensor) const {
    return layers_[layer].states[tensor].floats.data();
  }

  void take_inputs(std::size_t layer, Block block) const { layers_[layer].input.forward(block); }
  void forward(std::size_t layer, const PackedSteps& steps, Sequences some);
  void backward(std::size_t layer, const PackedSteps& steps, Sequences some);
  /// Computes the gradient of the layer's input.
  void pass_back(std::size_t layer, Block block) const { layers_[layer].input.backward(block); }

  struct Layer {
    CellLayer plan;
    TakingLayer input;
    Dense* past;
    std::vector<Matrix> before, states, grad_before;
    Matrix kept, past_states, grad_states, scratch;
    Wire out;

    /// The layer whose gradient is that of the gates by the past state.
    Dense& gates() const { return plan.kind.has_one_gradient ? *input.layer : *past; }
  };
  const std::deque<Layer>& layers() const { return layers_; }

 private:
  CellPass pass(Layer& layer) const;
  Recurrence recurrence(Layer& layer, const PackedSteps& steps) const;

  const Kernels& kernels_;
  Wire* in_;
  std::deque<Layer> layers_;
  Wire out_;
};

}  // namespace surefoot
