// What rows remember, on its way through the recurrent layers.
#include <algorithm>

#include "policy_pass.hpp"

namespace surefoot {

std::size_t MemoryPlan::num_parts() const { return kind == MemoryKind::kNone ? 0 : kind == MemoryKind::kGru ? 1 : 2; }

MatrixView Policy::Pass::remember(const MemoryPlan& plan, const Body& body, std::size_t first_part, MatrixView in,
                                  std::span<float* const> next) const {
  const std::size_t size = plan.part_size(), parts = plan.num_parts();
  float *before[2] = {}, *after[2] = {};  // h and c
  for (std::size_t part = 0; part < parts; ++part) {
    before[part] = carried(first_part + part);
    after[part] = next.empty() ? before[part] : next[first_part + part] + first_ * size;
  }
  std::size_t place = 0;  // of the layer in a row of the state
  for (const Cell& cell : body.cells) {
    // Both products are done before the cell writes: the state may be changed in place.
    const CellBlock block{.rows = rows_,
                          .hidden = plan.hidden,
                          .from_input = linear(cell.input, in, kInputGates),
                          .from_state = linear(cell.recurrent, {before[0] + place, size}, kStateGates),
                          .state = {before[parts - 1] + place, size},
                          .output = after[0] + place,
                          .cell = after[parts - 1] + place,
                          .stride = size};
    (plan.kind == MemoryKind::kGru ? kernels_.gru : kernels_.lstm)(block);
    in = {after[0] + place, size};
    place += plan.hidden;
  }
  return in;
}

float* Policy::Pass::carried(std::size_t part) const {
  const std::size_t size = policy_.state_sizes_[part];
  const float* const from = state_.parts[part] + first_ * size;
  float* const copy = workspace_.floats(kState + part, rows_ * size);
  std::copy_n(from, rows_ * size, copy);
  if (state_.episode_start == nullptr) return copy;
  for (std::size_t row = 0; row < rows_; ++row) {
    if (state_.episode_start[first_ + row]) std::fill_n(copy + row * size, size, 0.0f);
  }
  return copy;
}

}  // namespace surefoot
