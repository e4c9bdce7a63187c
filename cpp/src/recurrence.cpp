#include "surefoot/recurrence.hpp"

#include <algorithm>

#include "learning_threads.hpp"
#include "surefoot/layer.hpp"

namespace surefoot {

namespace {

/// Floats per sample that a layer keeps for each cell.
constexpr std::size_t kKept = 4;

/// The share of one thread in a step: a range of sequences that reach it.
struct Part {
  std::size_t step;
  std::size_t sequence;  // first sequence of the range
  std::size_t sample;    // sample of that sequence at this step
  std::size_t rows;
};

Part part_of(const PackedSteps& steps, std::size_t step, Sequences some) {
  const std::size_t begin = some.begin;
  return {step, begin, steps.first(step) + begin, std::clamp(steps.size(step), begin, some.end) - begin};
}

/// The rows of a range at the previous step, in states [B, H] that follow those of `initial` [S, H].
const float* before(const Recurrence& layer, const Part& part, const float* initial, const float* states) {
  if (part.step == 0) return initial + part.sequence * layer.hidden;
  return states + (layer.steps.first(part.step - 1) + part.sequence) * layer.hidden;
}

/// `step(part, gates_h, stride)` activates the gates of one step and writes its states.
template <class Step>
void forward(const Recurrence& layer, Sequences some, const float* h0, const float* h, const Step& step) {
  const std::size_t stride = layer.weight.stride();
  float* const gates_h = layer.scratch + some.begin * stride;
  for (std::size_t i = 0; i < layer.steps.count(); ++i) {
    const Part part = part_of(layer.steps, i, some);
    if (part.rows == 0) break;
    layer.weight.run(layer.kernels, part.rows, {before(layer, part, h0, h), layer.hidden}, gates_h);
    step(part, gates_h, stride);
  }
}

struct StateGradient {
  const float* h0;
  const float* h;
  const float* grad_h_last;
  MatrixView grad_gates_h;  // as written step by step
  float* h_before;
  float* grad_h0;  // the contribution of the gates is added
};

/// `gradient(part, later_h, stride)` writes the gradient of the gates of one step, given dL/dh from the next step.
template <class Gradient>
void backward(const Recurrence& layer, Sequences some, const StateGradient& state, const Gradient& gradient) {
  const std::size_t hidden = layer.hidden, stride = layer.transposed.stride();
  float* const later_h = layer.scratch + some.begin * stride;
  for (std::size_t sequence = some.begin; sequence < some.end; ++sequence) {
    float* const to = later_h + (sequence - some.begin) * stride;
    if (state.grad_h_last == nullptr) {
      std::fill_n(to, hidden, 0.0f);
    } else {
      std::copy_n(state.grad_h_last + sequence * hidden, hidden, to);
    }
  }
  for (std::size_t i = layer.steps.count(); i-- > 0;) {
    const Part part = part_of(layer.steps, i, some);
    if (part.rows == 0) continue;
    gradient(part, later_h, stride);
    const MatrixView gates = state.grad_gates_h;
    layer.transposed.run(layer.kernels, part.rows, {gates.data + part.sample * gates.stride, gates.stride}, later_h);
    std::copy_n(before(layer, part, state.h0, state.h), part.rows * hidden, state.h_before + part.sample * hidden);
  }
  for (std::size_t sequence = some.begin; sequence < some.end; ++sequence) {
    const float* const from = later_h + (sequence - some.begin) * stride;
    for (std::size_t i = 0; i < hidden; ++i) state.grad_h0[sequence * hidden + i] += from[i];
  }
}

/// Copies the states of some sequences [S, H] from others, or sets them to zero.
void begin_with(const float* from, std::size_t hidden, Sequences some, float* to) {
  const std::size_t first = some.begin * hidden, count = (some.end - some.begin) * hidden;
  if (from == nullptr) {
    std::fill_n(to + first, count, 0.0f);
  } else {
    std::copy_n(from + first, count, to + first);
  }
}

}  // namespace

void lstm_forward(const Recurrence& layer, const LstmForward& pass, Sequences some) {
  const std::size_t hidden = layer.hidden;
  forward(layer, some, pass.h0, pass.h, [&](const Part& part, const float* gates_h, std::size_t stride) {
    layer.kernels.lstm_step({.rows = part.rows,
                             .hidden = hidden,
                             .gates_x = pass.gates_x.data + part.sample * pass.gates_x.stride,
                             .gates_x_stride = pass.gates_x.stride,
                             .gates_h = gates_h,
                             .gates_h_stride = stride,
                             .c_before = before(layer, part, pass.c0, pass.c),
                             .gates = pass.gates + part.sample * kKept * hidden,
                             .c = pass.c + part.sample * hidden,
                             .h = pass.h + part.sample * hidden});
  });
}

void lstm_backward(const Recurrence& layer, const LstmBackward& pass, Sequences some) {
  const std::size_t hidden = layer.hidden;
  begin_with(nullptr, hidden, some, pass.grad_h0);
  begin_with(pass.grad_c_last, hidden, some, pass.grad_c0);  // carried from step to step
  const StateGradient state{pass.h0,       pass.h,      pass.grad_h_last, {pass.grad_gates, pass.grad_stride},
                            pass.h_before, pass.grad_h0};
  backward(layer, some, state, [&](const Part& part, const float* later_h, std::size_t stride) {
    layer.kernels.lstm_gradient({.rows = part.rows,
                                 .hidden = hidden,
                                 .gates = pass.gates + part.sample * kKept * hidden,
                                 .c_before = before(layer, part, pass.c0, pass.c),
                                 .c = pass.c + part.sample * hidden,
                                 .grad_h = pass.grad_h.data + part.sample * pass.grad_h.stride,
                                 .grad_h_stride = pass.grad_h.stride,
                                 .later_h = later_h,
                                 .later_h_stride = stride,
                                 .grad_c = pass.grad_c0 + part.sequence * hidden,
                                 .grad_gates = pass.grad_gates + part.sample * pass.grad_stride,
                                 .grad_stride = pass.grad_stride});
  });
}

void gru_forward(const Recurrence& layer, const GruForward& pass, Sequences some) {
  const std::size_t hidden = layer.hidden;
  forward(layer, some, pass.h0, pass.h, [&](const Part& part, const float* gates_h, std::size_t stride) {
    layer.kernels.gru_step({.rows = part.rows,
                            .hidden = hidden,
                            .gates_x = pass.gates_x.data + part.sample * pass.gates_x.stride,
                            .gates_x_stride = pass.gates_x.stride,
                            .gates_h = gates_h,
                            .gates_h_stride = stride,
                            .h_before = before(layer, part, pass.h0, pass.h),
                            .gates = pass.gates + part.sample * kKept * hidden,
                            .h = pass.h + part.sample * hidden});
  });
}

void gru_backward(const Recurrence& layer, const GruBackward& pass, Sequences some) {
  const std::size_t hidden = layer.hidden;
  begin_with(nullptr, hidden, some, pass.grad_h0);  // carried from step to step
  const StateGradient state{pass.h0,       pass.h,      pass.grad_h_last, {pass.grad_gates_h, pass.grad_stride},
                            pass.h_before, pass.grad_h0};
  backward(layer, some, state, [&](const Part& part, const float* later_h, std::size_t stride) {
    layer.kernels.gru_gradient({.rows = part.rows,
                                .hidden = hidden,
                                .gates = pass.gates + part.sample * kKept * hidden,
                                .h_before = before(layer, part, pass.h0, pass.h),
                                .grad_h = pass.grad_h.data + part.sample * pass.grad_h.stride,
                                .grad_h_stride = pass.grad_h.stride,
                                .later_h = later_h,
                                .later_h_stride = stride,
                                .kept_h = pass.grad_h0 + part.sequence * hidden,
                                .grad_gates_x = pass.grad_gates_x + part.sample * pass.grad_stride,
                                .grad_gates_h = pass.grad_gates_h + part.sample * pass.grad_stride,
                                .grad_stride = pass.grad_stride});
  });
}

void copy_last(const PackedSteps& steps, std::size_t hidden, const float* states, float* last) {
  for (std::size_t step = 0; step < steps.count(); ++step) {
    const std::size_t running = step + 1 < steps.count() ? steps.size(step + 1) : 0;
    std::copy_n(states + (steps.first(step) + running) * hidden, (steps.size(step) - running) * hidden,
                last + running * hidden);
  }
}

PooledRecurrence::PooledRecurrence(const PackedSteps& steps, std::size_t gates, std::size_t hidden, const float* weight,
                                   const float* bias, ThreadPool& pool, const Kernels& kernels)
    : gates_(gates), pool_(pool), layer_{steps, hidden, weight_, transposed_, kernels, nullptr} {
  if (bias != nullptr) {
    weight_.pack(kernels, hidden, gates * hidden, weight, bias);
  } else {
    transposed_.pack(kernels, hidden, gates * hidden, weight);
  }
  scratch_.resize(steps.sequences() * std::max(weight_.stride(), transposed_.stride()));
  layer_.scratch = scratch_.data();
}

void PooledRecurrence::over_sequences(const std::function<void(Sequences)>& work) const {
  const std::size_t multiplications = layer_.steps.samples() * gates_ * layer_.hidden * layer_.hidden;
  const std::size_t threads = std::min(threads_worth(multiplications), pool_.size());
  const std::vector<std::size_t> begins = layer_.steps.shares(threads);
  pool_.run(begins.size() - 1, [&](std::size_t thread) { work({begins[thread], begins[thread + 1]}); });
}

}  // namespace surefoot
