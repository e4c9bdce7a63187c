#include "surefoot/recurrence.hpp"

#include <algorithm>

#include "surefoot/layer.hpp"

namespace surefoot {

namespace {

/// Floats per sample that a layer keeps for each cell.
constexpr std::size_t kKept = 4;
/// Multiply-adds from which another thread pays off: about twenty microseconds.
constexpr std::size_t kThreadWork = 1'000'000;

/// The share of one thread in a step: a range of sequences that reach it.
struct StepRows {
  std::size_t step;
  std::size_t sequence;  // first sequence of the range
  std::size_t sample;    // sample of that sequence at this step
  std::size_t count;
};

StepRows rows_of(const PackedSteps& steps, std::size_t step, Sequences some) {
  const std::size_t begin = some.begin;
  return {step, begin, steps.first(step) + begin, std::clamp(steps.size(step), begin, some.end) - begin};
}

/// A tensor of the state of a range before a step.
const float* before(const Recurrence& layer, const StepRows& rows, const CellPass& pass, std::size_t of_state) {
  if (rows.step == 0) return pass.before[of_state] + rows.sequence * layer.hidden;
  return pass.states[of_state] + (layer.steps.first(rows.step - 1) + rows.sequence) * layer.hidden;
}

/// Copies the states of some sequences [S, H] from others, or sets them to zero.
void begin_with(const float* from, std::size_t hidden, Sequences some, float* to, std::size_t stride) {
  for (std::size_t i = some.begin; i < some.end; ++i) {
    from == nullptr ? std::fill_n(to + i * stride, hidden, 0.0f)
                    : std::copy_n(from + i * hidden, hidden, to + i * stride);
  }
}

}  // namespace

CellKind gru_cells(const Kernels& kernels) { return {3, 1, false, kernels.gru, kernels.gru_gradient}; }

CellKind lstm_cells(const Kernels& kernels) { return {4, 2, true, kernels.lstm, kernels.lstm_gradient}; }

void forward(const CellKind& kind, const Recurrence& layer, const CellPass& pass, Sequences some) {
  const std::size_t hidden = layer.hidden, stride = layer.weight.stride(), carried = kind.num_tensors - 1;
  float* const gates_h = layer.scratch + some.begin * stride;
  for (std::size_t i = 0; i < layer.steps.count(); ++i) {
    const StepRows rows = rows_of(layer.steps, i, some);
    if (rows.count == 0) break;
    layer.weight.run(layer.kernels, rows.count, {before(layer, rows, pass, 0), hidden}, gates_h);
    kind.step({.rows = rows.count,
               .hidden = hidden,
               .gates_x = {pass.gates_x.data + rows.sample * pass.gates_x.stride, pass.gates_x.stride},
               .gates_h = {gates_h, stride},
               .carried = {before(layer, rows, pass, carried), hidden},
               .gates = pass.kept + rows.sample * kKept * hidden,
               .h = pass.states[0] + rows.sample * hidden,
               .c = pass.states[carried] + rows.sample * hidden,
               .stride = hidden});
  }
}

void backward(const CellKind& kind, const Recurrence& layer, const CellPass& pass, Sequences some) {
  const std::size_t hidden = layer.hidden, stride = layer.transposed.stride(), carried = kind.num_tensors - 1;
  for (std::size_t tensor = 0; tensor < kind.num_tensors; ++tensor) {
    begin_with(tensor == 0 ? nullptr : pass.grad_last[tensor], hidden, some, pass.grad_before[tensor], hidden);
  }
  float* const later_h = layer.scratch + some.begin * stride;
  begin_with(pass.grad_last[0], hidden, some, layer.scratch, stride);
  for (std::size_t i = layer.steps.count(); i-- > 0;) {
    const StepRows rows = rows_of(layer.steps, i, some);
    if (rows.count == 0) continue;
    const std::size_t grad_row = rows.sample * pass.grad_stride;
    kind.gradient({.rows = rows.count,
                   .hidden = hidden,
                   .gates = pass.kept + rows.sample * kKept * hidden,
                   .carried = before(layer, rows, pass, carried),
                   .c = pass.states[carried] + rows.sample * hidden,
                   .grad_h = {pass.grad_output.data + rows.sample * pass.grad_output.stride, pass.grad_output.stride},
                   .later_h = {later_h, stride},
                   .grad_carried = pass.grad_before[carried] + rows.sequence * hidden,
                   .grad_gates_x = pass.grad_gates_x + grad_row,
                   .grad_gates_h = pass.grad_gates_past + grad_row,
                   .grad_stride = pass.grad_stride});
    layer.transposed.run(layer.kernels, rows.count, {pass.grad_gates_past + grad_row, pass.grad_stride}, later_h);
    std::copy_n(before(layer, rows, pass, 0), rows.count * hidden, pass.past + rows.sample * hidden);
  }
  for (std::size_t sequence = some.begin; sequence < some.end; ++sequence) {
    const float* const from = layer.scratch + sequence * stride;
    for (std::size_t i = 0; i < hidden; ++i) pass.grad_before[0][sequence * hidden + i] += from[i];
  }
}

void copy_last(const PackedSteps& steps, std::size_t hidden, const float* states, float* last) {
  for (std::size_t step = 0; step < steps.count(); ++step) {
    const std::size_t running = step + 1 < steps.count() ? steps.size(step + 1) : 0;
    std::copy_n(states + (steps.first(step) + running) * hidden, (steps.size(step) - running) * hidden,
                last + running * hidden);
  }
}

PooledRecurrence::PooledRecurrence(const CellKind& kind, const PackedSteps& steps, std::size_t hidden,
                                   const float* weight, const float* bias, ThreadPool& pool, const Kernels& kernels)
    : kind_(kind), pool_(pool), layer_{steps, hidden, weight_, transposed_, kernels, nullptr} {
  const std::size_t outputs = kind.num_gates * hidden;
  bias != nullptr ? weight_.pack(kernels, hidden, outputs, weight, bias)
                  : transposed_.pack(kernels, hidden, outputs, weight);
  scratch_.resize(steps.sequences() * std::max(weight_.stride(), transposed_.stride()));
  layer_.scratch = scratch_.data();
}

void PooledRecurrence::run(const CellPass& pass) const {
  const std::size_t multiplications = layer_.steps.samples() * kind_.num_gates * layer_.hidden * layer_.hidden;
  const std::size_t threads = std::min(multiplications / kThreadWork + 1, pool_.size());
  const std::vector<std::size_t> begins = layer_.steps.shares(threads);
  const auto run = weight_.stride() > 0 ? forward : backward;
  pool_.run(begins.size() - 1,
            [&](std::size_t thread) { run(kind_, layer_, pass, {begins[thread], begins[thread + 1]}); });
}

}  // namespace surefoot
