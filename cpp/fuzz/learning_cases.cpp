// The learner's passes, with sizes that fit no vector and numbers that are not finite.
#include <algorithm>

#include "chance.hpp"
#include "surefoot/perceptron.hpp"
#include "surefoot/recurrence.hpp"

namespace surefoot::fuzz {
namespace {

using Floats = std::vector<float>;

Floats numbers(std::size_t count, Chance& chance) {
  Floats made(count);
  for (float& number : made) {
    number = static_cast<float>(chance.once_in(200) ? chance.odd_number() : chance.uniform(-1.0, 1.0));
  }
  return made;
}

void perceptron(Chance& chance, ThreadPool& pool, const Kernels& kernels) {
  constexpr Activation kLearned[] = {Activation::kTanh, Activation::kRelu, Activation::kElu, Activation::kLeakyRelu};
  const std::size_t samples = chance.between(1, 200), in = chance.between(1, 40), layers = chance.between(1, 3);
  Perceptron network{{}, chance.one_of(kLearned), samples, pool, kernels};
  const Floats inputs = numbers(samples * in, chance);
  std::vector<Floats> weights, biases, outputs, grad_weights, grad_biases;
  std::vector<std::size_t> sizes{in};
  for (std::size_t i = 0; i < layers; ++i) {
    sizes.push_back(chance.between(1, 70));
    weights.push_back(numbers(sizes[i] * sizes[i + 1], chance));
    biases.push_back(numbers(sizes[i + 1], chance));
    outputs.emplace_back(samples * sizes[i + 1]);
    grad_weights.emplace_back(weights[i].size());
    grad_biases.emplace_back(sizes[i + 1]);
  }
  PerceptronForward forward{inputs.data(), {}};
  const Floats grad_output = numbers(samples * sizes.back(), chance);
  Floats grad_inputs(inputs.size());
  PerceptronBackward backward{inputs.data(), {}, grad_output.data(), {}, {}, nullptr};
  if (chance.once_in(2)) backward.grad_inputs = grad_inputs.data();
  for (std::size_t i = 0; i < layers; ++i) {
    network.layers.push_back({sizes[i], sizes[i + 1], weights[i].data(), biases[i].data()});
    forward.outputs.push_back(outputs[i].data());
    backward.outputs.push_back(outputs[i].data());
    backward.grad_weights.push_back(grad_weights[i].data());
    backward.grad_biases.push_back(grad_biases[i].data());
  }
  perceptron_forward(network, forward);
  perceptron_backward(network, backward);
}

void recurrence(Chance& chance, ThreadPool& pool, const Kernels& kernels) {
  std::vector<std::int64_t> running{static_cast<std::int64_t>(chance.between(1, 30))};
  for (std::size_t step = chance.between(0, 12); step > 0; --step) {
    running.push_back(static_cast<std::int64_t>(chance.between(1, static_cast<std::size_t>(running.back()))));
  }
  const PackedSteps steps(running);
  const bool is_lstm = chance.once_in(2);
  const std::size_t hidden = chance.between(1, 40), gates = is_lstm ? 4 : 3;
  const std::size_t samples = steps.samples() * hidden, sequences = steps.sequences() * hidden;
  const Floats weight = numbers(gates * hidden * hidden, chance), bias = numbers(gates * hidden, chance);
  const Floats gates_x = numbers(gates * samples, chance), h0 = numbers(sequences, chance);
  const Floats c0 = numbers(sequences, chance), grad_h = numbers(samples, chance);
  const Floats grad_h_last = numbers(sequences, chance), grad_c_last = numbers(sequences, chance);
  Floats kept(4 * samples), h(samples), c(samples), h_last(sequences), h_before(samples);
  Floats grad_x(gates * samples), grad_gates(gates * samples), grad_h0(sequences), grad_c0(sequences);
  const MatrixView given{gates_x.data(), gates * hidden}, grad{grad_h.data(), hidden};
  PooledRecurrence forward(steps, gates, hidden, weight.data(), bias.data(), pool, kernels);
  PooledRecurrence backward(steps, gates, hidden, weight.data(), nullptr, pool, kernels);
  if (is_lstm) {
    forward.run<LstmForward>(lstm_forward, {given, h0.data(), c0.data(), kept.data(), h.data(), c.data()});
    backward.run<LstmBackward>(
        lstm_backward, {kept.data(), h0.data(), c0.data(), h.data(), c.data(), grad, grad_h_last.data(),
                        grad_c_last.data(), grad_gates.data(), gates * hidden, h_before.data(), grad_h0.data(),
                        grad_c0.data()});
  } else {
    forward.run<GruForward>(gru_forward, {given, h0.data(), kept.data(), h.data()});
    backward.run<GruBackward>(gru_backward, {kept.data(), h0.data(), h.data(), grad, grad_h_last.data(), grad_x.data(),
                                             grad_gates.data(), gates * hidden, h_before.data(), grad_h0.data()});
  }
  copy_last(steps, hidden, h.data(), h_last.data());
}

}  // namespace

void fuzz_learning(Chance& chance) {
  ThreadPool pool(chance.between(1, 4));
  const Kernels& kernels = *chance.one_of(available_kernels());
  chance.once_in(2) ? perceptron(chance, pool, kernels) : recurrence(chance, pool, kernels);
}

}  // namespace surefoot::fuzz
