// Every kernel of the table gives the same bits with AVX2 and with AVX-512.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>
#include <string>

#include "made_up.hpp"
#include "same_bits.hpp"
#include "surefoot/layer.hpp"

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

void append(Floats& to, const Floats& values) { to.insert(to.end(), values.begin(), values.end()); }

/// A layer's results without their padding, which depends on the instruction set.
Floats run_layer(const Kernels& set, std::size_t in, std::size_t out, std::size_t rows) {
  const Floats weight = made_up(out * in, 1.0, 0.3), bias = made_up(out, 0.5, 0.7),
               given = made_up(rows * in, 2.0, 0.1);
  Layer layer;
  layer.pack(set, in, out, weight.data(), bias.data());
  Floats padded(rows * layer.stride()), result;
  layer.run(set, rows, {given.data(), in}, padded.data());
  for (std::size_t row = 0; row < rows; ++row) {
    const auto begin = padded.begin() + static_cast<std::ptrdiff_t>(row * layer.stride());
    result.insert(result.end(), begin, begin + static_cast<std::ptrdiff_t>(out));
  }
  return result;
}

constexpr std::size_t kInputs[] = {1, 3, 8, 15, 16, 17, 31, 64, 100, 255, 256, 257, 600};

TEST(instructions_agree_on_wide_layers) {
  check_same_bits([](const Kernels& set) {
    Floats all;
    for (const std::size_t in : kInputs) {
      for (const std::size_t out : {5, 16, 17, 33, 64, 96}) {
        for (const std::size_t rows : {1, 2, 3, 4, 7, 13, 50}) append(all, run_layer(set, in, out, rows));
      }
    }
    return all;
  });
}

TEST(instructions_agree_on_narrow_layers) {
  check_same_bits([](const Kernels& set) {
    Floats all;
    for (const std::size_t in : kInputs) {
      for (std::size_t out = 1; out <= kNarrowOutputs; ++out) {
        for (const std::size_t rows : {1, 2, 5, 8, 21}) append(all, run_layer(set, in, out, rows));
      }
    }
    return all;
  });
}

TEST(instructions_agree_on_transposed_products) {
  check_same_bits([](const Kernels& set) {
    Floats all;
    for (const std::size_t samples : {1, 5, 64, 300}) {
      for (const std::size_t rows : {1, 4, 17}) {
        constexpr std::size_t kOut = 8;  // one panel of any instruction set
        const Floats weight = made_up(samples * kOut, 1.0, 0.2), given = made_up(samples * rows, 1.0, 0.9);
        Floats panel(samples * set.panel), bias(set.panel), out(rows * set.panel);
        for (std::size_t k = 0; k < samples; ++k) {
          for (std::size_t i = 0; i < kOut; ++i) panel[k * set.panel + i] = weight[k * kOut + i];
        }
        set.linear_transposed({samples, kOut, panel.data(), bias.data()}, rows, {given.data(), rows}, out.data(),
                              set.panel);
        for (std::size_t row = 0; row < rows; ++row) {
          for (std::size_t i = 0; i < kOut; ++i) all.push_back(out[row * set.panel + i]);
        }
      }
    }
    return all;
  });
}

/// Numbers of all sizes, ends of their ranges among them.
Floats all_sizes() {
  Floats values = made_up(501, 1.0, 0.4);
  for (const double scale : {1e-30, 1e-3, 10.0, 60.0, 1e5}) append(values, made_up(301, scale, scale));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  append(values, {0.0f, -0.0f, 1.0f, -1.0f, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                  std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::min(),
                  std::numeric_limits<float>::max(), -std::numeric_limits<float>::max()});
  return values;
}

TEST(instructions_agree_on_functions) {
  check_same_bits([](const Kernels& set) {
    Floats all;
    for (const auto function : {set.tanh, set.exp, set.expm1, set.log, set.softplus}) {
      Floats values = all_sizes();
      function(values.data(), values.data(), values.size());
      append(all, values);
    }
    for (const Activation activation : kActivations) {
      Floats values = all_sizes();
      set.activate(activation, values.data(), values.size());
      append(all, values);
    }
    return all;
  });
}

TEST(instructions_agree_on_slopes) {
  check_same_bits([](const Kernels& set) {
    Floats all;
    for (const Activation activation : kActivations) {
      const Floats y = all_sizes(), gradient = made_up(y.size(), 3.0, 0.8);
      Floats out(y.size());
      set.differentiate(activation, y.data(), gradient.data(), out.data(), y.size());
      append(all, out);
    }
    return all;
  });
}

TEST(instructions_agree_on_normalization) {
  check_same_bits([](const Kernels& set) {
    Floats all;
    for (const std::size_t size : {1, 4, 17, 40}) {
      constexpr std::size_t kRows = 5;
      const Floats in = made_up(kRows * size, 9.0, 0.2), shift = made_up(size, 2.0, 0.6);
      Floats scale = made_up(size, 0.4, 0.5), out(in.size());
      for (float& value : scale) value += 0.5f;
      set.normalize({shift.data(), scale.data(), 4.0f}, kRows, size, in.data(), out.data());
      append(all, out);
    }
    return all;
  });
}

TEST(instructions_agree_on_uniforms) {
  check_same_bits([](const Kernels& set) {
    Floats all;
    for (const std::size_t rows : {1, 3, 8, 21}) {
      for (const std::size_t count : {1, 4, 7}) {
        Floats out(rows * count);
        set.uniforms({0x123456789abcdefull, 5, 1000, 2, rows, count}, out.data());
        append(all, out);
      }
    }
    return all;
  });
}

TEST(instructions_agree_on_gaussians) {
  check_same_bits([](const Kernels& set) {
    Floats all;
    for (const bool squash : {false, true}) {
      for (const std::size_t rows : {1, 7, 16, 35}) {
        for (const std::size_t size : {1, 3, 8}) {
          const Floats mean = made_up(rows * size, 2.0, 0.1), noise = made_up(rows * size, 2.5, 0.8);
          Floats std = made_up(size, 0.6, 0.2), action(rows * size), log_prob(rows);
          for (float& value : std) value = std::exp(value);
          set.gaussian({rows,
                        size,
                        {mean.data(), size},
                        {std.data(), 0},
                        {noise.data(), size},
                        squash,
                        action.data(),
                        log_prob.data()});
          append(all, action);
          append(all, log_prob);
        }
      }
    }
    return all;
  });
}

TEST(instructions_agree_on_choices) {
  check_same_bits([](const Kernels& set) {
    Floats all;
    for (const bool is_masked : {false, true}) {
      for (const bool is_yes_no : {false, true}) {
        for (const std::size_t rows : {1, 7, 16, 35}) {
          const std::vector<std::int64_t> sizes =
              is_yes_no ? std::vector<std::int64_t>{1, 1, 1} : std::vector<std::int64_t>{2, 5, 1};
          const std::size_t width =
              static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}));
          const Floats logits = made_up(rows * width, 3.0, 0.4);
          Floats noise = made_up(rows * sizes.size(), 0.499, 0.8), scratch(5 * set.lanes), log_prob(rows);
          for (float& value : noise) value += 0.5f;
          const auto mask = std::make_unique<bool[]>(rows * width);
          for (std::size_t i = 0; i < rows * width; ++i) mask[i] = i % 3 != 1 || i % width == width - 1;
          std::vector<std::int64_t> choice(rows * sizes.size());
          (is_yes_no ? set.bernoulli : set.categorical)({.rows = rows,
                                                         .count = sizes.size(),
                                                         .sizes = sizes.data(),
                                                         .logits = {logits.data(), width},
                                                         .mask = is_masked ? mask.get() : nullptr,
                                                         .noise = {noise.data(), sizes.size()},
                                                         .scratch = scratch.data(),
                                                         .choice = choice.data(),
                                                         .log_prob = log_prob.data()});
          append(all, Floats(choice.begin(), choice.end()));
          append(all, log_prob);
        }
      }
    }
    return all;
  });
}

TEST(the_process_uses_the_instructions_that_it_was_told) {
  const char* const asked = std::getenv("SUREFOOT_INSTRUCTIONS");
  CHECK_EQUAL(std::string(kernels().name), asked && *asked ? asked : available_kernels().back()->name);
}

}  // namespace
}  // namespace surefoot
