#include "network.hpp"

#include <algorithm>

namespace surefoot {

namespace {

LayerNames names_of(const std::string& prefix) { return {prefix + ".weight", prefix + ".bias"}; }

}  // namespace

TakingLayer::TakingLayer(Dense& dense, Wire& wire) : layer(&dense), in(&wire), adds(false) {
  if (wire.grad == nullptr) return;
  layer->pass_gradients();
  adds = wire.claim();
}

Mlp::Mlp(const Kernels& kernels, Activation activation, const MlpPlan& plan, const TensorReader& tensors, Wire& in,
         std::deque<Dense>& all)
    : kernels_(kernels), activation_(activation), in_(&in) {
  Wire* from = in_;
  for (const std::string& name : plan.layers) {
    const std::vector<std::size_t>& shape = tensors[name + ".weight"].shape;
    Dense& dense = all.emplace_back(kernels, names_of(name), shape[1], shape[0]);
    layers_.emplace_back(dense, *from);
    if (!slope_shows(activation)) before_.emplace_back(dense.out.size, dense.out.stride);
    from = &between_.emplace_back(&dense.out, &dense.grad);
  }
  out_ = *from;
  out_.is_claimed = false;
}

void Mlp::reserve(std::size_t rows) {
  for (Matrix& matrix : before_) matrix.reserve(rows);
}

void Mlp::forward(Block block) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].forward(block);
    Matrix& out = layers_[i].layer->out;
    const std::size_t count = block.count * out.stride;
    if (!before_.empty()) std::copy_n(out.row(block.first), count, before_[i].row(block.first));
    kernels_.activate(activation_, out.row(block.first), count);
  }
}

void Mlp::backward(Block block) {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    Dense& layer = *layers_[i].layer;
    const Matrix& shown = before_.empty() ? layer.out : before_[i];
    float* const grad = layer.grad.row(block.first);
    kernels_.differentiate(activation_, shown.row(block.first), grad, grad, block.count * layer.grad.stride);
    layers_[i].backward(block);
  }
}

Concat::Concat(const Kernels& kernels, std::vector<Wire*> inputs) : inputs_(std::move(inputs)) {
  std::size_t size = 0;
  bool learns = false;
  for (const Wire* input : inputs_) {
    size += input->value->size;
    learns = learns || input->grad != nullptr;
  }
  value_ = Matrix(size, rounded_up(size, kernels.panel));
  grad_ = Matrix(size, value_.stride);
  out_ = {&value_, learns ? &grad_ : nullptr};
  if (inputs_.size() == 1) return;
  for (Wire* input : inputs_) adds_.push_back(input->grad != nullptr && input->claim());
}

void Concat::reserve(std::size_t rows) {
  if (inputs_.size() == 1) return;
  value_.reserve(rows);
  if (out_.grad != nullptr) grad_.reserve(rows);
}

void Concat::forward(Block block) {
  if (inputs_.size() == 1) return;
  std::size_t column = 0;
  for (const Wire* input : inputs_) {
    const std::size_t size = input->value->size;
    for (std::size_t row = block.first; row < block.first + block.count; ++row) {
      std::copy_n(input->value->row(row), size, value_.row(row) + column);
    }
    column += size;
  }
}

void Concat::backward(Block block) {
  if (inputs_.size() == 1 || out_.grad == nullptr) return;
  std::size_t column = 0;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    Matrix* const grad = inputs_[i]->grad;
    const std::size_t size = inputs_[i]->value->size;
    for (std::size_t row = block.first; grad != nullptr && row < block.first + block.count; ++row) {
      const float* const from = grad_.row(row) + column;
      float* const to = grad->row(row);
      for (std::size_t k = 0; k < size; ++k) to[k] = adds_[i] ? to[k] + from[k] : from[k];
    }
    column += size;
  }
}

Cells::Cells(const Kernels& kernels, const Memory& memory, Wire& in, std::deque<Dense>& all)
    : kernels_(kernels), in_(&in) {
  Wire* from = in_;
  for (CellLayer& plan : memory.cells()) {
    const std::size_t hidden = plan.hidden, gates = plan.kind.num_gates * hidden;
    Dense& input = all.emplace_back(kernels, plan.input, from->value->size, gates);
    Dense& past = all.emplace_back(kernels, plan.past, hidden, gates);
    past.pass_gradients();
    Layer& layer = layers_.emplace_back(Layer{plan, TakingLayer(input, *from), &past, {}, {}, {}, {}, {}, {}, {}, {}});
    for (std::size_t tensor = 0; tensor < plan.kind.num_tensors; ++tensor) {
      layer.before.emplace_back(hidden, hidden);
      layer.states.emplace_back(hidden, hidden);
      layer.grad_before.emplace_back(hidden, hidden);
    }
    layer.kept = Matrix(4 * hidden, 4 * hidden);
    layer.past_states = Matrix(hidden, hidden);
    layer.grad_states = Matrix(hidden, rounded_up(hidden, kernels.panel));
    layer.scratch = Matrix(gates, rounded_up(gates, kernels.panel));
    layer.out = {&layer.states[0], &layer.grad_states};
    from = &layer.out;
  }
  if (!layers_.empty()) out_ = {from->value, from->grad};
}

std::size_t Cells::num_tensors() const { return layers_.empty() ? 0 : layers_[0].plan.kind.num_tensors; }

std::size_t Cells::hidden() const { return layers_.empty() ? 0 : layers_[0].plan.hidden; }

void Cells::reserve(std::size_t rows, std::size_t sequences) {
  for (Layer& layer : layers_) {
    for (Matrix& matrix : layer.before) matrix.reserve(sequences);
    for (Matrix& matrix : layer.grad_before) matrix.reserve(sequences);
    layer.scratch.reserve(sequences);
    for (Matrix& matrix : layer.states) matrix.reserve(rows);
    for (Matrix* matrix : {&layer.kept, &layer.past_states, &layer.grad_states}) matrix->reserve(rows);
  }
}

CellPass Cells::pass(Layer& layer) const {
  CellPass pass{};
  Dense& input = *layer.input.layer;
  pass.gates_x = input.out.view();
  for (std::size_t tensor = 0; tensor < layer.plan.kind.num_tensors; ++tensor) {
    pass.before[tensor] = layer.before[tensor].floats.data();
    pass.states[tensor] = layer.states[tensor].floats.data();
    pass.grad_before[tensor] = layer.grad_before[tensor].floats.data();
  }
  pass.kept = layer.kept.floats.data();
  pass.grad_output = layer.grad_states.view();
  pass.grad_gates_x = input.grad.floats.data();
  pass.grad_gates_past = layer.gates().grad.floats.data();
  pass.grad_stride = input.grad.stride;
  pass.past = layer.past_states.floats.data();
  return pass;
}

Recurrence Cells::recurrence(Layer& layer, const PackedSteps& steps) const {
  const Dense& past = *layer.past;
  return {steps, layer.plan.hidden, past.packed(), past.transposed(), kernels_, layer.scratch.floats.data()};
}

void Cells::forward(std::size_t index, const PackedSteps& steps, Sequences some) {
  Layer& layer = layers_[index];
  surefoot::forward(layer.plan.kind, recurrence(layer, steps), pass(layer), some);
}

void Cells::backward(std::size_t index, const PackedSteps& steps, Sequences some) {
  Layer& layer = layers_[index];
  surefoot::backward(layer.plan.kind, recurrence(layer, steps), pass(layer), some);
}

}  // namespace surefoot
