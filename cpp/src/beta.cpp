#include "beta.hpp"

#include <math.h>  // lgamma_r: std::lgamma writes a global

#include <algorithm>
#include <array>
#include <cmath>

#include "surefoot/box_muller.hpp"
#include "surefoot/philox.hpp"

namespace surefoot {

namespace {

constexpr float kEdge = 1e-6f;
constexpr float kOtherEdge = static_cast<float>(1 - 1e-6);
constexpr double kTiny = 1e-12;

double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

/// The noise of one row, drawn four words at a time and only as far as attempts fail.
class RowNoise {
 public:
  RowNoise(const NoiseKey& key, std::uint64_t row)
      : key_{static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)},
        step_(static_cast<std::uint32_t>(key.step)),
        row_(static_cast<std::uint32_t>(row)),
        stream_(key.stream) {}

  /// Word j of the row as a uniform.
  std::array<float, 4> four(std::size_t word) const {
    const auto words = philox({static_cast<std::uint32_t>(word / 4), step_, row_, stream_}, key_);
    std::array<float, 4> drawn;
    for (std::size_t i = 0; i < 4; ++i) drawn[i] = static_cast<float>(words[i] >> 8) * 0x1p-24f;
    return drawn;
  }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t step_, row_, stream_;
};

/// Gamma(shape >= 1) by Marsaglia and Tsang (2000); words from `word` on are 8 for normals, then 8 uniforms.
double sample_gamma(double shape, const RowNoise& noise, std::size_t word) {
  const double d = shape - 1.0 / 3;
  const double spread = std::sqrt(9 * d);
  double proposal = 0;
  for (std::size_t group = 0; group < kBetaAttempts; group += 4) {
    std::array<float, 4> normals = noise.four(word + group);
    box_muller(normals.data(), normals.size());
    const std::array<float, 4> uniforms = noise.four(word + kBetaAttempts + group);
    for (std::size_t i = 0; i < 4; ++i) {
      const double normal = normals[i];
      const double root = 1 + normal / spread;
      const double cubed = root * root * root;
      const double positive = std::max(cubed, kTiny);
      proposal = d * positive;
      const double bound = 0.5 * normal * normal + d * (1 - positive + std::log(positive));
      if (cubed > 0 && std::log(std::max(static_cast<double>(uniforms[i]), kTiny)) < bound) return proposal;
    }
  }
  return proposal;
}

double beta_log_prob(double alpha, double beta, double value) {
  const double density = (alpha - 1) * std::log(value) + (beta - 1) * std::log1p(-value);
  return density - (log_gamma(alpha) + log_gamma(beta) - log_gamma(alpha + beta));
}

}  // namespace

void sample_beta(std::size_t rows, std::size_t size, MatrixView concentrations, const NoiseKey& noise, float* action,
                 float* log_prob) {
  for (std::size_t row = 0; row < rows; ++row) {
    const RowNoise row_noise(noise, noise.first_row + row);
    const float* const alphas = concentrations.data + row * concentrations.stride;
    const float* const betas = alphas + size;
    double sum = 0;
    for (std::size_t j = 0; j < size; ++j) {
      const double first = sample_gamma(alphas[j], row_noise, j * kBetaNoise);
      const double second = sample_gamma(betas[j], row_noise, j * kBetaNoise + kBetaNoise / 2);
      const float value = std::clamp(static_cast<float>(first / (first + second)), kEdge, kOtherEdge);
      action[row * size + j] = value;
      sum += beta_log_prob(alphas[j], betas[j], value);
    }
    log_prob[row] = static_cast<float>(sum);
  }
}

}  // namespace surefoot
