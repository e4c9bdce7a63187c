#include "surefoot/recurrence.hpp"

#include <algorithm>

#include "learning_threads.hpp"
#include "surefoot/layer.hpp"

namespace surefoot {

namespace {

constexpr std::size_t kLstmGates = 4, kGruGates = 3;

/// What one thread does of a step: neighboring sequences that still run.
struct Part {
  std::size_t step;
  std::size_t sequence;  // the first of them
  std::size_t sample;    // that sequence's sample of this step
  std::size_t rows;
};

Part part_of(const PackedSteps& steps, std::size_t step, std::size_t begin, std::size_t end) {
  return {step, begin, steps.first(step) + begin, std::clamp(steps.size(step), begin, end) - begin};
}

/// Call `work(begin, end)` for all sequences, cut into as many runs of neighbors as there are threads for them.
template <class Work>
void over_sequences(const Recurrence& layer, std::size_t gates, const Work& work) {
  const std::size_t multiplications = layer.steps.samples() * gates * layer.hidden * layer.hidden;
  const std::size_t threads = std::min(threads_worth(multiplications), layer.pool.size());
  const std::vector<std::size_t> begins = layer.steps.shares(threads);
  layer.pool.run(begins.size() - 1, [&](std::size_t thread) { work(begins[thread], begins[thread + 1]); });
}

/// The rows of a part at the step before, in states [B, H] that begin with those of `initial` [S, H].
const float* before(const Recurrence& layer, const Part& part, const float* initial, const float* states) {
  if (part.step == 0) return initial + part.sequence * layer.hidden;
  return states + (layer.steps.first(part.step - 1) + part.sequence) * layer.hidden;
}

/// Each sequence's state after its own last step.
void copy_last(const Recurrence& layer, const float* states, float* last) {
  const PackedSteps& steps = layer.steps;
  for (std::size_t step = 0; step < steps.count(); ++step) {
    const std::size_t running = step + 1 < steps.count() ? steps.size(step + 1) : 0;
    std::copy_n(states + (steps.first(step) + running) * layer.hidden, (steps.size(step) - running) * layer.hidden,
                last + running * layer.hidden);
  }
}

/// `step(part, gates_h, stride)` activates the gates of one step and writes its states.
template <class Step>
void forward(const Recurrence& layer, std::size_t gates, const float* h0, const float* h, const Step& step) {
  Layer linear;
  linear.pack(layer.kernels, layer.hidden, gates * layer.hidden, layer.weight, layer.bias);
  over_sequences(layer, gates, [&](std::size_t begin, std::size_t end) {
    AlignedFloats gates_h;
    gates_h.resize((end - begin) * linear.stride());
    for (std::size_t i = 0; i < layer.steps.count(); ++i) {
      const Part part = part_of(layer.steps, i, begin, end);
      if (part.rows == 0) break;
      linear.run(layer.kernels, part.rows, {before(layer, part, h0, h), layer.hidden}, gates_h.data());
      step(part, gates_h.data(), linear.stride());
    }
  });
}

struct StateGradient {
  const float* h0;
  const float* h;
  const float* grad_h_last;
  const float* grad_gates_h;  // as written step by step
  float* h_before;
  float* grad_h0;  // the part through the gates is added
};

/// `gradient(part, later_h, stride)` writes the gradient of one step's gates, from dL/dh of the step after it.
template <class Gradient>
void backward(const Recurrence& layer, std::size_t gates, const StateGradient& state, const Gradient& gradient) {
  const std::size_t hidden = layer.hidden;
  const TransposedLayer weight(layer.kernels, hidden, gates * hidden, layer.weight);
  over_sequences(layer, gates, [&](std::size_t begin, std::size_t end) {
    AlignedFloats later_h;
    later_h.resize((end - begin) * weight.stride());
    for (std::size_t sequence = begin; sequence < end; ++sequence) {
      std::copy_n(state.grad_h_last + sequence * hidden, hidden, later_h.data() + (sequence - begin) * weight.stride());
    }
    for (std::size_t i = layer.steps.count(); i-- > 0;) {
      const Part part = part_of(layer.steps, i, begin, end);
      if (part.rows == 0) continue;
      gradient(part, later_h.data(), weight.stride());
      weight.run(part.rows, {state.grad_gates_h + part.sample * gates * hidden, gates * hidden}, later_h.data());
      std::copy_n(before(layer, part, state.h0, state.h), part.rows * hidden, state.h_before + part.sample * hidden);
    }
    for (std::size_t sequence = begin; sequence < end; ++sequence) {
      const float* const from = later_h.data() + (sequence - begin) * weight.stride();
      for (std::size_t i = 0; i < hidden; ++i) state.grad_h0[sequence * hidden + i] += from[i];
    }
  });
}

}  // namespace

void lstm_forward(const Recurrence& layer, const LstmForward& pass) {
  const std::size_t hidden = layer.hidden;
  forward(layer, kLstmGates, pass.h0, pass.h, [&](const Part& part, const float* gates_h, std::size_t stride) {
    layer.kernels.lstm_step({.rows = part.rows,
                             .hidden = hidden,
                             .gates_x = pass.gates_x + part.sample * kLstmGates * hidden,
                             .gates_h = gates_h,
                             .gates_h_stride = stride,
                             .c_before = before(layer, part, pass.c0, pass.c),
                             .gates = pass.gates + part.sample * kLstmGates * hidden,
                             .c = pass.c + part.sample * hidden,
                             .h = pass.h + part.sample * hidden});
  });
  copy_last(layer, pass.h, pass.h_last);
  copy_last(layer, pass.c, pass.c_last);
}

void lstm_backward(const Recurrence& layer, const LstmBackward& pass) {
  const std::size_t hidden = layer.hidden, states = layer.steps.sequences() * hidden;
  std::fill_n(pass.grad_h0, states, 0.0f);
  std::copy_n(pass.grad_c_last, states, pass.grad_c0);  // carried from step to step
  const StateGradient state{pass.h0, pass.h, pass.grad_h_last, pass.grad_gates, pass.h_before, pass.grad_h0};
  backward(layer, kLstmGates, state, [&](const Part& part, const float* later_h, std::size_t stride) {
    layer.kernels.lstm_gradient({.rows = part.rows,
                                 .hidden = hidden,
                                 .gates = pass.gates + part.sample * kLstmGates * hidden,
                                 .c_before = before(layer, part, pass.c0, pass.c),
                                 .c = pass.c + part.sample * hidden,
                                 .grad_h = pass.grad_h + part.sample * hidden,
                                 .later_h = later_h,
                                 .later_h_stride = stride,
                                 .grad_c = pass.grad_c0 + part.sequence * hidden,
                                 .grad_gates = pass.grad_gates + part.sample * kLstmGates * hidden});
  });
}

void gru_forward(const Recurrence& layer, const GruForward& pass) {
  const std::size_t hidden = layer.hidden;
  forward(layer, kGruGates, pass.h0, pass.h, [&](const Part& part, const float* gates_h, std::size_t stride) {
    layer.kernels.gru_step({.rows = part.rows,
                            .hidden = hidden,
                            .gates_x = pass.gates_x + part.sample * kGruGates * hidden,
                            .gates_h = gates_h,
                            .gates_h_stride = stride,
                            .h_before = before(layer, part, pass.h0, pass.h),
                            .gates = pass.gates + part.sample * 4 * hidden,
                            .h = pass.h + part.sample * hidden});
  });
  copy_last(layer, pass.h, pass.h_last);
}

void gru_backward(const Recurrence& layer, const GruBackward& pass) {
  const std::size_t hidden = layer.hidden;
  std::fill_n(pass.grad_h0, layer.steps.sequences() * hidden, 0.0f);  // carried from step to step
  const StateGradient state{pass.h0, pass.h, pass.grad_h_last, pass.grad_gates_h, pass.h_before, pass.grad_h0};
  backward(layer, kGruGates, state, [&](const Part& part, const float* later_h, std::size_t stride) {
    layer.kernels.gru_gradient({.rows = part.rows,
                                .hidden = hidden,
                                .gates = pass.gates + part.sample * 4 * hidden,
                                .h_before = before(layer, part, pass.h0, pass.h),
                                .grad_h = pass.grad_h + part.sample * hidden,
                                .later_h = later_h,
                                .later_h_stride = stride,
                                .kept_h = pass.grad_h0 + part.sequence * hidden,
                                .grad_gates_x = pass.grad_gates_x + part.sample * kGruGates * hidden,
                                .grad_gates_h = pass.grad_gates_h + part.sample * kGruGates * hidden});
  });
}

}  // namespace surefoot
