// The learner's multilayer perceptrons from Python; results are written into arrays that come along.
#include "surefoot/perceptron.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "activations.hpp"
#include "arrays.hpp"
#include "threads.hpp"

namespace surefoot {
namespace {

using Arrays = std::vector<nb::object>;

Activation activation_of(const std::string& name) {
  for (const auto& [known, activation] : kActivations) {
    if (name == known && slope_shows(activation)) return activation;
  }
  throw nb::value_error(("activation: the core has no gradient for '" + name + "'").c_str());
}

std::size_t length(nb::handle array, const std::string& name, std::size_t axis, std::size_t axes) {
  nb::ndarray<const float, nb::c_contig, nb::device::cpu> found;
  if (!nb::try_cast(array, found, false) || found.ndim() != axes || found.shape(axis) == 0) {
    throw nb::type_error(
        (name + " must be a C-contiguous float32 array of " + std::to_string(axes) + " dimensions").c_str());
  }
  return found.shape(axis);
}

std::string item(const char* name, std::size_t index) { return std::string(name) + "[" + std::to_string(index) + "]"; }

void check_count(const char* name, const Arrays& arrays, std::size_t count) {
  if (arrays.size() != count) throw nb::value_error((std::string(name) + " must have one array per layer").c_str());
}

/// The layers, each as wide as the one before it gives.
Perceptron checked_layers(const std::string& activation, nb::handle inputs, const Arrays& weights, const Arrays* biases,
                          Threads& threads) {
  if (weights.empty()) throw nb::value_error("weights must have at least one layer");
  if (biases != nullptr) check_count("biases", *biases, weights.size());
  Perceptron perceptron{{}, activation_of(activation), length(inputs, "inputs", 0, 2), threads.pool()};
  std::size_t in = length(inputs, "inputs", 1, 2);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::size_t out = length(weights[i], item("weights", i), 0, 2);
    const float* const weight = checked<const float>(weights[i], item("weights", i), {out, in});
    const float* const bias = biases ? checked<const float>((*biases)[i], item("biases", i), {out}) : nullptr;
    perceptron.layers.push_back({in, out, weight, bias});
    in = out;
  }
  return perceptron;
}

template <class Number>
std::vector<Number*> checked_outputs(const Perceptron& perceptron, const Arrays& arrays) {
  check_count("outputs", arrays, perceptron.layers.size());
  std::vector<Number*> found;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    found.push_back(checked<Number>(arrays[i], item("outputs", i), {perceptron.samples, perceptron.layers[i].out}));
  }
  return found;
}

void forward(const std::string& activation, nb::object inputs, const Arrays& weights, const Arrays& biases,
             const Arrays& outputs, Threads& threads) {
  const Perceptron perceptron = checked_layers(activation, inputs, weights, &biases, threads);
  const Shape shape{perceptron.samples, perceptron.layers.front().in};
  const PerceptronForward pass{checked<const float>(inputs, "inputs", shape),
                               checked_outputs<float>(perceptron, outputs)};
  const nb::gil_scoped_release released;
  perceptron_forward(perceptron, pass);
}

void backward(const std::string& activation, nb::object inputs, const Arrays& weights, const Arrays& outputs,
              nb::object grad_output, const Arrays& grad_weights, const Arrays& grad_biases, nb::object grad_inputs,
              Threads& threads) {
  const Perceptron perceptron = checked_layers(activation, inputs, weights, nullptr, threads);
  const Shape shape{perceptron.samples, perceptron.layers.front().in};
  const Shape last{perceptron.samples, perceptron.layers.back().out};
  check_count("grad_weights", grad_weights, weights.size());
  check_count("grad_biases", grad_biases, weights.size());
  PerceptronBackward pass{.inputs = checked<const float>(inputs, "inputs", shape),
                          .outputs = checked_outputs<const float>(perceptron, outputs),
                          .grad_output = checked<const float>(grad_output, "grad_output", last),
                          .grad_weights = {},
                          .grad_biases = {},
                          .grad_inputs = nullptr};
  if (!grad_inputs.is_none()) pass.grad_inputs = checked<float>(grad_inputs, "grad_inputs", shape);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto [in, out, weight, bias] = perceptron.layers[i];
    pass.grad_weights.push_back(checked<float>(grad_weights[i], item("grad_weights", i), {out, in}));
    pass.grad_biases.push_back(checked<float>(grad_biases[i], item("grad_biases", i), {out}));
  }
  const nb::gil_scoped_release released;
  perceptron_backward(perceptron, pass);
}

}  // namespace
}  // namespace surefoot

void bind_perceptron(nanobind::module_& module) {
  using namespace nanobind::literals;
  module.def("perceptron_forward", &surefoot::forward, "activation"_a, "inputs"_a, "weights"_a, "biases"_a, "outputs"_a,
             "threads"_a, "Outputs of every layer of a multilayer perceptron, after its activation.");
  module.def("perceptron_backward", &surefoot::backward, "activation"_a, "inputs"_a, "weights"_a, "outputs"_a,
             "grad_output"_a, "grad_weights"_a, "grad_biases"_a, "grad_inputs"_a.none(), "threads"_a,
             "Gradients of weights, biases and, unless None, inputs, given the gradient of the last layer's outputs.");
}
