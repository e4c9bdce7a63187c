#include <cmath>
#include <functional>

#include "same_bits.hpp"
#include "surefoot/convolution.hpp"

namespace surefoot {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

struct Case {
  ImageSize in;
  std::size_t outputs, kernel, stride;
};

/// Odd sizes: one pixel, a kernel as large as the image, strides that skip pixels, more than 256 terms and pixels.
const Case kCases[] = {{{1, 1, 1}, 1, 1, 1},  {{2, 5, 5}, 3, 5, 2},    {{1, 9, 8}, 4, 2, 3},   {{3, 7, 6}, 5, 3, 2},
                       {{2, 6, 9}, 17, 1, 1}, {{4, 13, 11}, 33, 4, 3}, {{1, 3, 40}, 2, 3, 1},  {{1, 24, 20}, 13, 3, 1},
                       {{8, 8, 7}, 3, 6, 1},  {{5, 10, 10}, 7, 2, 2},  {{3, 12, 12}, 18, 5, 4}};

Floats made_up(std::size_t count, double phase) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i) + phase));
  }
  return values;
}

/// An image, weights and what the loss says of each output; made up, but the same every time.
struct Given {
  ImageSize out;
  Floats image, weight, bias, grad;

  explicit Given(const Case& of)
      : out{of.outputs, (of.in.height - of.kernel) / of.stride + 1, (of.in.width - of.kernel) / of.stride + 1},
        image(made_up(of.in.floats(), 0.1)),
        weight(made_up(of.outputs * of.in.channels * of.kernel * of.kernel, 0.7)),
        bias(made_up(of.outputs, 0.3)),
        grad(made_up(out.floats(), 0.5)) {}
};

struct Results {
  Floats out, grad_image, grad_weight, grad_bias;
};

Results run(const Case& of, const Kernels& set, bool is_channels_last) {
  const Given given(of);
  const Convolution convolution(set, of.in, of.outputs, of.kernel, of.stride);
  const ImageSize& size = convolution.out();
  CHECK_EQUAL(size.floats(), given.out.floats());
  const PixelStrides strides = is_channels_last ? of.in.channels_last() : of.in.channels_first();
  Floats image(of.in.floats()), planes(convolution.planes_floats()), out(convolution.out_floats());
  copy_image(of.in, given.image.data(), of.in.channels_first(), image.data(), strides);
  convolution.split(image.data(), strides, planes.data());
  convolution.forward(planes.data(), given.weight.data(), given.bias.data(), out.data());

  Results results{Floats(size.floats()), Floats(of.in.floats()), Floats(given.weight.size()), Floats(of.outputs)};
  copy_image(size, out.data(), convolution.out_strides(), results.out.data(), size.channels_first());
  Floats grad(convolution.grad_floats());
  copy_image(size, given.grad.data(), size.channels_first(), grad.data() + convolution.grad_origin(),
             convolution.grad_strides());
  Workspace workspace;
  const std::size_t terms = given.weight.size() / of.outputs;
  Floats by_term(terms * convolution.columns());
  convolution.weight_gradient(planes.data(), grad.data(), {workspace, 0}, by_term.data(), results.grad_bias.data());
  for (std::size_t i = 0; i < given.weight.size(); ++i) {
    results.grad_weight[i] = by_term[i % terms * convolution.columns() + i / terms];
  }
  convolution.input_gradient(grad.data(), given.weight.data(), {workspace, 0}, results.grad_image.data(),
                             of.in.channels_first());
  return results;
}

/// The formula in double.
Doubles plain(const Case& of, const Doubles& image, const Doubles& weight, const Doubles& bias) {
  const ImageSize size = Given(of).out;
  Doubles out;
  for (std::size_t output = 0; output < size.channels; ++output) {
    for (std::size_t y = 0; y < size.height; ++y) {
      for (std::size_t x = 0; x < size.width; ++x) {
        double sum = bias[output];
        for (std::size_t channel = 0; channel < of.in.channels; ++channel) {
          for (std::size_t i = 0; i < of.kernel * of.kernel; ++i) {
            const std::size_t row = y * of.stride + i / of.kernel, column = x * of.stride + i % of.kernel;
            sum += weight[(output * of.in.channels + channel) * of.kernel * of.kernel + i] *
                   image[(channel * of.in.height + row) * of.in.width + column];
          }
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

/// How the loss changes with each number, by central differences.
Doubles slopes(Doubles& numbers, const std::function<double()>& loss) {
  Doubles found;
  for (double& number : numbers) {
    const double before = number;
    number = before + 0.5;
    const double more = loss();
    number = before - 0.5;
    found.push_back(more - loss());  // exact, because the loss is linear
    number = before;
  }
  return found;
}

TEST(convolutions_and_their_gradients_are_those_of_the_formula) {
  for (const Case& of : kCases) {
    const Given given(of);
    Doubles image(given.image.begin(), given.image.end()), weight(given.weight.begin(), given.weight.end()),
        bias(given.bias.begin(), given.bias.end());
    const auto loss = [&] {
      const Doubles out = plain(of, image, weight, bias);
      double sum = 0;
      for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * static_cast<double>(given.grad[i]);
      return sum;
    };
    const bool is_small = weight.size() * given.out.floats() < 200'000;  // differences take long
    for (const Kernels* set : available_kernels()) {
      for (const bool is_channels_last : {false, true}) {
        const Results results = run(of, *set, is_channels_last);
        CHECK_NEAR(results.out, plain(of, image, weight, bias), 2e-5);
        if (!is_small || is_channels_last) continue;
        CHECK_NEAR(results.grad_image, slopes(image, loss), 2e-5);
        CHECK_NEAR(results.grad_weight, slopes(weight, loss), 2e-5);
        CHECK_NEAR(results.grad_bias, slopes(bias, loss), 2e-5);
      }
    }
  }
}

TEST(instructions_agree_on_convolutions) {
  check_same_bits([](const Kernels& set) {
    Floats all;
    for (const Case& of : kCases) {
      const Results results = run(of, set, false);
      for (const Floats* result : {&results.out, &results.grad_image, &results.grad_weight, &results.grad_bias}) {
        all.insert(all.end(), result->begin(), result->end());
      }
    }
    return all;
  });
}

}  // namespace
}  // namespace surefoot
