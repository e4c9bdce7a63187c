// Gated recurrent units (Cho et al. 2014); the state is h.
#include "cells.hpp"

namespace surefoot {
namespace {

struct GruMemory final : Cells {
  GruMemory(const PartPlan& plan, const Kernels& kernels) : Cells(plan, kernels, 3, 1, kernels.gru, false) {}

  void forward(const Recurrence& layer, const CellPass& pass, Sequences part) const override {
    gru_forward(layer, {pass.gates_x, pass.before[0], pass.kept, pass.states[0]}, part);
  }

  void backward(const Recurrence& layer, const CellPass& pass, Sequences part) const override {
    gru_backward(layer,
                 {.gates = pass.kept,
                  .h0 = pass.before[0],
                  .h = pass.states[0],
                  .grad_h = pass.grad_output,
                  .grad_h_last = nullptr,
                  .grad_gates_x = pass.grad_gates_x,
                  .grad_gates_h = pass.grad_gates_past,
                  .grad_stride = pass.grad_stride,
                  .h_before = pass.past,
                  .grad_h0 = pass.grad_before[0]},
                 part);
  }
};

const RegisteredPart<Memory, GruMemory> kGru{"gru"};

}  // namespace
}  // namespace surefoot
