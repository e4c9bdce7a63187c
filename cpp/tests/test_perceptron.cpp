#include <cmath>

#include "check.hpp"
#include "same_bits.hpp"
#include "surefoot/perceptron.hpp"

namespace surefoot {
namespace {

using Floats = std::vector<float>;

Floats made_up(std::size_t count, double scale, double phase) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(scale * std::sin(1.7 * static_cast<double>(i) + phase));
  }
  return values;
}

/// Everything that both passes read; made up, but the same every time.
struct Inputs {
  std::size_t samples;
  std::vector<std::size_t> sizes;  // of the inputs, then of every layer
  Activation activation;
  Floats inputs{}, grad_output{};
  std::vector<Floats> weights{}, biases{};

  Inputs(std::size_t count, std::vector<std::size_t> widths, Activation function)
      : samples(count), sizes(std::move(widths)), activation(function) {
    inputs = made_up(samples * sizes.front(), 1.0, 0.1);
    grad_output = made_up(samples * sizes.back(), 1.0, 0.5);
    for (std::size_t i = 1; i < sizes.size(); ++i) {
      const double scale = 1.5 / std::sqrt(static_cast<double>(sizes[i - 1]));
      weights.push_back(made_up(sizes[i] * sizes[i - 1], scale, static_cast<double>(i)));
      biases.push_back(made_up(sizes[i], 0.3, 2.0 + static_cast<double>(i)));
    }
  }

  std::size_t layers() const { return weights.size(); }
};

struct Outputs {
  std::vector<Floats> outputs{}, grad_weights{}, grad_biases{};
  Floats grad_inputs{};
  bool operator==(const Outputs&) const = default;
};

template <class Number, class Source>
std::vector<Number*> pointers(Source& arrays) {
  std::vector<Number*> found;
  for (auto& array : arrays) found.push_back(array.data());
  return found;
}

Outputs run(const Inputs& given, const Kernels& set, std::size_t threads, bool wants_inputs = true) {
  ThreadPool pool(threads);
  Perceptron perceptron{{}, given.activation, given.samples, pool, set};
  Outputs made;
  for (std::size_t i = 0; i < given.layers(); ++i) {
    perceptron.layers.push_back({given.sizes[i], given.sizes[i + 1], given.weights[i].data(), given.biases[i].data()});
    made.outputs.emplace_back(given.samples * given.sizes[i + 1]);
    made.grad_weights.emplace_back(given.weights[i].size());
    made.grad_biases.emplace_back(given.biases[i].size());
  }
  made.grad_inputs.resize(given.inputs.size());
  perceptron_forward(perceptron, {given.inputs.data(), pointers<float>(made.outputs)});
  perceptron_backward(perceptron, {given.inputs.data(), pointers<const float>(made.outputs), given.grad_output.data(),
                                   pointers<float>(made.grad_weights), pointers<float>(made.grad_biases),
                                   wants_inputs ? made.grad_inputs.data() : nullptr});
  return made;
}

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kRelu:
      return x > 0 ? x : 0;
    case Activation::kElu:
      return x > 0 ? x : std::expm1(x);
    default:
      return x > 0 ? x : 0.01 * x;
  }
}

double slope(Activation activation, double y) {
  switch (activation) {
    case Activation::kTanh:
      return 1 - y * y;
    case Activation::kRelu:
      return y > 0 ? 1 : 0;
    case Activation::kElu:
      return y > 0 ? 1 : y + 1;
    default:
      return y > 0 ? 1 : 0.01;
  }
}

/// The formulas in double, one sample after the other.
struct Plain {
  std::vector<std::vector<double>> outputs{}, grad_weights{}, grad_biases{};
  std::vector<double> grad_inputs{};
};

Plain plain(const Inputs& given) {
  Plain made;
  for (std::size_t i = 0; i < given.layers(); ++i) {
    made.outputs.emplace_back(given.samples * given.sizes[i + 1]);
    made.grad_weights.emplace_back(given.weights[i].size());
    made.grad_biases.emplace_back(given.biases[i].size());
  }
  for (std::size_t sample = 0; sample < given.samples; ++sample) {
    std::vector<std::vector<double>> values;
    values.emplace_back(given.inputs.begin() + static_cast<std::ptrdiff_t>(sample * given.sizes[0]),
                        given.inputs.begin() + static_cast<std::ptrdiff_t>((sample + 1) * given.sizes[0]));
    for (std::size_t i = 0; i < given.layers(); ++i) {
      std::vector<double> next(given.sizes[i + 1]);
      for (std::size_t o = 0; o < next.size(); ++o) {
        double sum = given.biases[i][o];
        for (std::size_t k = 0; k < given.sizes[i]; ++k) sum += given.weights[i][o * given.sizes[i] + k] * values[i][k];
        next[o] = activated(given.activation, sum);
        made.outputs[i][sample * next.size() + o] = next[o];
      }
      values.push_back(next);
    }
    std::vector<double> gradient(
        given.grad_output.begin() + static_cast<std::ptrdiff_t>(sample * given.sizes.back()),
        given.grad_output.begin() + static_cast<std::ptrdiff_t>((sample + 1) * given.sizes.back()));
    for (std::size_t i = given.layers(); i-- > 0;) {
      std::vector<double> earlier(given.sizes[i]);
      for (std::size_t o = 0; o < gradient.size(); ++o) {
        const double through = gradient[o] * slope(given.activation, values[i + 1][o]);
        made.grad_biases[i][o] += through;
        for (std::size_t k = 0; k < earlier.size(); ++k) {
          made.grad_weights[i][o * earlier.size() + k] += through * values[i][k];
          earlier[k] += through * given.weights[i][o * earlier.size() + k];
        }
      }
      gradient = earlier;
    }
    made.grad_inputs.insert(made.grad_inputs.end(), gradient.begin(), gradient.end());
  }
  return made;
}

void check_near(const Floats& ours, const std::vector<double>& exact) {
  double largest = 1e-3;
  for (const double value : exact) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < exact.size(); ++i) CHECK_NEAR(ours[i] / largest, exact[i] / largest, 1e-5);
}

constexpr Activation kKnown[] = {Activation::kTanh, Activation::kRelu, Activation::kElu, Activation::kLeakyRelu};

TEST(perceptrons_follow_their_formulas) {
  const std::vector<std::vector<std::size_t>> shapes{{4, 64, 64}, {1, 1}, {17, 33, 5, 2}, {3, 64}, {40, 7, 48, 3}};
  for (const Kernels* set : available_kernels()) {
    for (const Activation activation : kKnown) {
      for (const auto& sizes : shapes) {
        for (const std::size_t samples : {1, 7, 64, 131}) {
          const Inputs given(samples, sizes, activation);
          const Outputs ours = run(given, *set, 2);
          const Plain exact = plain(given);
          for (std::size_t i = 0; i < given.layers(); ++i) {
            check_near(ours.outputs[i], exact.outputs[i]);
            check_near(ours.grad_weights[i], exact.grad_weights[i]);
            check_near(ours.grad_biases[i], exact.grad_biases[i]);
          }
          check_near(ours.grad_inputs, exact.grad_inputs);
        }
      }
    }
  }
}

TEST(threads_do_not_change_perceptrons) {
  const Inputs given(3000, {20, 64, 80}, Activation::kTanh);  // enough work for several
  const Outputs alone = run(given, kernels(), 1);
  for (const std::size_t threads : {2, 3, 7}) CHECK(run(given, kernels(), threads) == alone);
}

TEST(instructions_agree_on_perceptrons) {
  for (const Activation activation : kKnown) {
    for (const std::vector<std::size_t>& sizes : {std::vector<std::size_t>{4, 64, 64}, {17, 33, 5, 2}, {300, 70, 1}}) {
      const Inputs given(131, sizes, activation);
      check_same_bits([&](const Kernels& set) {
        Outputs made = run(given, set, 2);
        Floats all = made.grad_inputs;
        for (const auto* arrays : {&made.outputs, &made.grad_weights, &made.grad_biases}) {
          for (const Floats& array : *arrays) all.insert(all.end(), array.begin(), array.end());
        }
        return all;
      });
    }
  }
}

TEST(perceptrons_need_not_differentiate_their_inputs) {
  const Inputs given(70, {5, 16, 16}, Activation::kElu);
  Outputs with = run(given, kernels(), 1), without = run(given, kernels(), 1, false);
  CHECK(without.grad_inputs == Floats(given.inputs.size()));
  without.grad_inputs = with.grad_inputs;
  CHECK(with == without);
}

}  // namespace
}  // namespace surefoot
