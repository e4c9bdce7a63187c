// Long short-term memory (Hochreiter and Schmidhuber 1997); the state is h and c.
#include "cells.hpp"

namespace surefoot {
namespace {

struct LstmMemory final : Cells {
  LstmMemory(const PartPlan& plan, const Kernels& kernels) : Cells(plan, kernels, lstm_cells(kernels)) {}
};

const RegisteredPart<Memory, LstmMemory> kLstm{"lstm"};

}  // namespace
}  // namespace surefoot
