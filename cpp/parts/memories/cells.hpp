// Base class of GRU and LSTM: stacked layers of cells, with torch's names of the weights.
#pragma once

#include "surefoot/parts/memory.hpp"

namespace surefoot {

class Cells : public Memory {
 public:
  Cells(const PartPlan& plan, const Kernels& kernels, const CellKind& kind);

  std::vector<std::size_t> state_sizes() const override;
  std::size_t output_size(std::size_t) const override { return hidden_; }
  void check(TensorReader& tensors, std::size_t in) const override;
  void pack(const TensorReader& tensors) override;
  MatrixView step(const PartRows& rows, const StateRows& state) const override;
  std::vector<CellLayer> cells() const override;

 private:
  /// `side` is "ih" for the input from the layer below, "hh" for the past state.
  LayerNames names(const char* side, std::size_t layer) const;

  /// One layer: its products with the input and with the past state.
  struct Cell {
    Layer input;
    Layer recurrent;
  };

  std::string name_;
  std::size_t layers_, hidden_;
  CellKind kind_;
  std::vector<Cell> cells_;
};

}  // namespace surefoot
