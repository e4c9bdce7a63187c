#include "cells.hpp"

namespace surefoot {

Cells::Cells(const PartPlan& plan, const Kernels& kernels, const CellKind& kind)
    : Memory(kernels),
      name_(plan.text("name")),
      layers_(plan.count("layers")),
      hidden_(plan.count("hidden")),
      kind_(kind),
      cells_(layers_) {}

std::vector<std::size_t> Cells::state_sizes() const {
  return std::vector<std::size_t>(kind_.num_tensors, layers_ * hidden_);
}

LayerNames Cells::names(const char* side, std::size_t layer) const {
  const std::string suffix = std::string("_") + side + "_l" + std::to_string(layer);
  return {name_ + ".weight" + suffix, name_ + ".bias" + suffix};
}

void Cells::check(TensorReader& tensors, std::size_t in) const {
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    const LayerNames input = names("ih", layer), state = names("hh", layer);
    tensors.check_linear(input.weight, input.bias, in, kind_.num_gates * hidden_);
    tensors.check_linear(state.weight, state.bias, hidden_, kind_.num_gates * hidden_);
    in = hidden_;
  }
}

void Cells::pack(const TensorReader& tensors) {
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    const LayerNames input = names("ih", layer), state = names("hh", layer);
    cells_[layer].input.pack(kernels_, tensors, input.weight, input.bias);
    cells_[layer].recurrent.pack(kernels_, tensors, state.weight, state.bias);
  }
}

std::vector<CellLayer> Cells::cells() const {
  std::vector<CellLayer> layers;
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    layers.push_back({names("ih", layer), names("hh", layer), kind_, hidden_});
  }
  return layers;
}

MatrixView Cells::step(const PartRows& rows, const StateRows& state) const {
  const std::size_t size = layers_ * hidden_, last = kind_.num_tensors - 1;
  MatrixView in = rows.in;
  std::size_t place = 0;  // offset of the layer in a row of the state
  for (const Cell& cell : cells_) {
    const MatrixView before{state.before[0] + place, size};
    // Compute both products before the cell writes, because the state may be updated in place.
    kind_.step({.rows = rows.count,
                .hidden = hidden_,
                .gates_x = cell.input.run(kernels_, rows.count, in, rows.scratch, 0),
                .gates_h = cell.recurrent.run(kernels_, rows.count, before, rows.scratch, 1),
                .carried = {state.before[last] + place, size},
                .gates = nullptr,
                .h = state.after[0] + place,
                .c = state.after[last] + place,
                .stride = size});
    in = {state.after[0] + place, size};
    place += hidden_;
  }
  return in;
}

}  // namespace surefoot
