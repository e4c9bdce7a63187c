// The learner's passes, with sizes that fit no vector and numbers that are not finite.
#include <algorithm>
#include <cmath>
#include <memory>

#include "chance.hpp"
#include "surefoot/parts/head.hpp"
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

PartPlan head_plan(Chance& chance) {
  constexpr const char* kKinds[] = {"gaussian", "tanh_gaussian", "beta", "multi_discrete", "bernoulli"};
  const std::string kind = chance.one_of(kKinds);
  const std::size_t size = chance.between(1, 20);
  if (kind == "bernoulli") return {kind, {{"layer", "logits"}, {"size", static_cast<double>(size)}}};
  std::vector<double> sizes(size), low(size, -1.0), high(size, 1.0);
  for (double& choices : sizes) choices = static_cast<double>(chance.between(1, 9));
  if (kind == "multi_discrete") {
    return {kind, {{"layer", "logits"}, {"sizes", sizes}, {"start", std::vector<double>(size)}}};
  }
  if (kind == "beta") return {kind, {{"layer", "both"}, {"low", low}, {"high", high}}};
  return {kind,
          {{"layer", "mean"},
           {"std_layer", chance.once_in(2) ? "std" : ""},
           {"log_std", "log_std"},
           {"std_floor", 1e-3},
           {"low", low},
           {"high", high},
           {"rescale", false}}};
}

void head(Chance& chance, const Kernels& kernels) {
  const auto head = make_part<Head>(head_plan(chance), kernels);
  const std::size_t rows = chance.between(1, 70), elements = rows * head->action_size();
  std::vector<Floats> given, vectors, by_given, by_vectors;
  std::vector<MatrixView> views;
  std::vector<const float*> vector_pointers;
  std::vector<float*> given_pointers, by_vector_pointers;
  for (const Learned& layer : head->layers()) {
    const std::size_t stride = layer.size + chance.between(0, 20);
    given.push_back(numbers(rows * stride, chance));
    by_given.emplace_back(rows * stride);
    views.push_back({given.back().data(), stride});
    given_pointers.push_back(by_given.back().data());
  }
  for (const Learned& vector : head->vectors()) {
    vectors.push_back(numbers(vector.size, chance));
    by_vectors.emplace_back(rows * vector.size);
    vector_pointers.push_back(vectors.back().data());
    by_vector_pointers.push_back(chance.once_in(2) ? by_vectors.back().data() : nullptr);
  }
  const Floats action = numbers(elements, chance);
  const std::vector<std::int64_t> choice(elements);  // the first is always there
  const auto mask = std::make_unique<bool[]>(rows * head->mask_size());
  for (std::size_t i = 0; i < rows * head->mask_size(); ++i) mask[i] = chance.once_in(2);
  const bool is_masked = chance.once_in(2);
  const Floats by_log_prob = numbers(rows, chance), by_entropy = numbers(rows, chance);
  Floats log_prob(rows), entropy(rows);
  Workspace workspace;
  const LearnedRows learned{rows, views, vector_pointers, {workspace, 0}};
  const Done done{action.data(), choice.data(), is_masked ? mask.get() : nullptr};
  head->evaluate(learned, done, log_prob.data(), entropy.data());
  head->gradient(learned, done, by_log_prob.data(), by_entropy.data(), {given_pointers, by_vector_pointers});
  if (is_masked) return;  // what is forbidden may be anything
  const std::size_t size = head->layers()[0].size, stride = views[0].stride;
  for (std::size_t i = 0; i < rows * stride; ++i) {
    if (i % stride >= size || !std::isnan(given[0][i])) continue;
    require(std::isnan(log_prob[i / stride]), "a head hides a NaN in its log-probability");
    require(std::isnan(by_given[0][i]), "a head hides a NaN in its gradient");
  }
}

}  // namespace

void fuzz_learning(Chance& chance) {
  ThreadPool pool(chance.between(1, 4));
  const Kernels& kernels = *chance.one_of(available_kernels());
  switch (chance.between(0, 2)) {
    case 0:
      return perceptron(chance, pool, kernels);
    case 1:
      return recurrence(chance, pool, kernels);
    default:
      return head(chance, kernels);
  }
}

}  // namespace surefoot::fuzz
