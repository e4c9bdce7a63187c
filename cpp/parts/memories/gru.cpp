// Gated recurrent units (Cho et al. 2014); the state is h.
#include "cells.hpp"

namespace surefoot {
namespace {

struct GruMemory final : Cells {
  GruMemory(const PartPlan& plan, const Kernels& kernels) : Cells(plan, kernels, gru_cells(kernels)) {}
};

const RegisteredPart<Memory, GruMemory> kGru{"gru"};

}  // namespace
}  // namespace surefoot
