// Long short-term memory (Hochreiter and Schmidhuber 1997); the state is h and c.
#include "cells.hpp"

namespace surefoot {
namespace {

struct LstmMemory final : Cells {
  LstmMemory(const PartPlan& plan, const Kernels& kernels) : Cells(plan, kernels, 4, 2, kernels.lstm, true) {}

  void forward(const Recurrence& layer, const CellPass& pass, Sequences part) const override {
    lstm_forward(layer, {pass.gates_x, pass.before[0], pass.before[1], pass.kept, pass.states[0], pass.states[1]},
                 part);
  }

  void backward(const Recurrence& layer, const CellPass& pass, Sequences part) const override {
    lstm_backward(layer,
                  {.gates = pass.kept,
                   .h0 = pass.before[0],
                   .c0 = pass.before[1],
                   .h = pass.states[0],
                   .c = pass.states[1],
                   .grad_h = pass.grad_output,
                   .grad_h_last = nullptr,
                   .grad_c_last = nullptr,
                   .grad_gates = pass.grad_gates_x,
                   .grad_stride = pass.grad_stride,
                   .h_before = pass.past,
                   .grad_h0 = pass.grad_before[0],
                   .grad_c0 = pass.grad_before[1]},
                  part);
  }
};

const RegisteredPart<Memory, LstmMemory> kLstm{"lstm"};

}  // namespace
}  // namespace surefoot
