// The Beta head: rejection sampling from counted noise.
#pragma once

#include <cstddef>

#include "surefoot/kernels.hpp"
#include "surefoot/policy.hpp"

namespace surefoot {

/// Rejection rounds with counted noise.
inline constexpr std::size_t kBetaAttempts = 8;

/// Uniforms for one element: two gammas, each with a normal and a uniform an attempt.
inline constexpr std::size_t kBetaNoise = 2 * 2 * kBetaAttempts;

/// Sample rows of independent Betas. A row of `concentrations` is `size` alphas, then `size` betas.
void sample_beta(std::size_t rows, std::size_t size, MatrixView concentrations, const NoiseKey& noise, float* action,
                 float* log_prob);

}  // namespace surefoot
