// The table of kernels of the instruction set that is being compiled.
#pragma once

#include "convolution.hpp"
#include "elementwise.hpp"
#include "head_steps.hpp"
#include "heads.hpp"
#include "learning.hpp"
#include "linear.hpp"
#include "recurrence.hpp"
#include "uniforms.hpp"

namespace surefoot {
namespace {

constexpr Kernels table(const char* name) {
  return {.name = name,
          .lanes = kLanes,
          .panel = kPanel,
          .linear = linear,
          .linear_transposed = linear_transposed,
          .linear_narrow = linear_narrow,
          .shifted_sums = shifted_sums,
          .shifted_products = shifted_products,
          .activate = activate,
          .differentiate = differentiate,
          .normalize = normalize,
          .uniforms = uniforms,
          .gru = gru,
          .gru_gradient = gru_gradient,
          .lstm = lstm,
          .lstm_gradient = lstm_gradient,
          .gaussian = gaussian,
          .categorical = categorical,
          .bernoulli = bernoulli,
          .evaluate_gaussian = evaluate_gaussian,
          .gaussian_gradient = gaussian_gradient,
          .evaluate_categorical = evaluate_categorical,
          .categorical_gradient = categorical_gradient,
          .evaluate_bernoulli = evaluate_bernoulli,
          .bernoulli_gradient = bernoulli_gradient,
          .column_sums = column_sums,
          .sum_squares = sum_squares,
          .copy_panel = copy_panel,
          .transpose_panel = transpose_panel,
          .surrogate = surrogate,
          .quantile_huber = quantile_huber,
          .adam = adam,
          .scale_by_variance = scale_by_variance,
          .tanh = map<tanh>,
          .exp = map<exp>,
          .expm1 = map<expm1>,
          .log = map<log>,
          .softplus = map<softplus>};
}

}  // namespace
}  // namespace surefoot
