// Independent Beta distributions on the action's bounds, sampled by rejection with counter-based noise.
#include <algorithm>
#include <array>
#include <cmath>

#include "bounds.hpp"
#include "gammas.hpp"
#include "surefoot/box_muller.hpp"
#include "surefoot/parts/head.hpp"
#include "surefoot/philox.hpp"

namespace surefoot {
namespace {

/// Number of rejection rounds.
constexpr std::size_t kAttempts = 8;

/// Uniforms per element: two gammas, each with a normal and a uniform per attempt.
constexpr std::size_t kNoise = 2 * 2 * kAttempts;

constexpr float kEdge = 1e-6f;
constexpr float kOtherEdge = static_cast<float>(1 - 1e-6);
constexpr double kTiny = 1e-12;

/// The noise of one row, drawn four words at a time and only as far as needed.
class RowNoise {
 public:
  RowNoise(const NoiseKey& key, std::uint64_t row)
      : key_{static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)},
        step_(static_cast<std::uint32_t>(key.step)),
        row_(static_cast<std::uint32_t>(row)),
        stream_(key.stream) {}

  /// Four words of the row from `word` on, as uniforms.
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

/// Gamma(shape >= 1) by Marsaglia and Tsang (2000). From `word` on, 8 words are for normals, then 8 for uniforms.
double sample_gamma(double shape, const RowNoise& noise, std::size_t word) {
  const double d = shape - 1.0 / 3;
  const double spread = std::sqrt(9 * d);
  double proposal = 0;
  for (std::size_t group = 0; group < kAttempts; group += 4) {
    std::array<float, 4> normals = noise.four(word + group);
    box_muller(normals.data(), normals.size());
    const std::array<float, 4> uniforms = noise.four(word + kAttempts + group);
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

/// Results for one element: log-probability of a value, entropy, and their derivatives by both concentrations.
struct BetaElement {
  double log_prob, entropy;
  double log_prob_by_alpha, log_prob_by_beta;
  double entropy_by_alpha, entropy_by_beta;

  BetaElement(double alpha, double beta, double value) {
    const double total = alpha + beta, log_value = std::log(value), log_rest = std::log1p(-value);
    const Gammas a = gammas(alpha), b = gammas(beta), both = gammas(total);
    const double log_normalizer = a.log_gamma + b.log_gamma - both.log_gamma;
    log_prob = (alpha - 1) * log_value + (beta - 1) * log_rest - log_normalizer;
    entropy = log_normalizer - (alpha - 1) * a.digamma - (beta - 1) * b.digamma + (total - 2) * both.digamma;
    log_prob_by_alpha = log_value - a.digamma + both.digamma;
    log_prob_by_beta = log_rest - b.digamma + both.digamma;
    entropy_by_alpha = (total - 2) * both.trigamma - (alpha - 1) * a.trigamma;
    entropy_by_beta = (total - 2) * both.trigamma - (beta - 1) * b.trigamma;
  }
};

class BetaHead final : public Head {
 public:
  BetaHead(const PartPlan& plan, const Kernels& kernels)
      : Head(kernels), low_(lower_bounds(plan)), high_(upper_bounds(plan)), layer_(plan.text("layer")) {}

  std::size_t action_size() const override { return low_.size(); }
  std::size_t noise_size() const override { return kNoise * action_size(); }
  void check(TensorReader& tensors, std::size_t in) const override {
    tensors.check_linear(layer_, in, 2 * action_size());
  }
  void pack(const TensorReader& tensors) override { concentrations_.pack(kernels_, tensors, layer_); }

  void sample(const PartRows& rows, const bool*, const NoiseKey& key, const Sampled& out) const override {
    const MatrixView raw = linear(concentrations_, rows, 0);
    const std::size_t count = rows.count * raw.stride;
    float* const concentrations = rows.scratch.floats(0, count);
    to_concentrations(raw.data, concentrations, count);
    for (std::size_t row = 0; row < rows.count; ++row) {
      sample_row(concentrations + row * raw.stride, RowNoise(key, key.row(row)), out.action + row * action_size(),
                 out.log_prob + row);
    }
  }

  void to_env(std::size_t rows, const float* action, float* env_action) const override {
    const std::size_t size = action_size();
    for (std::size_t i = 0; i < rows * size; ++i) {
      const float low = low_[i % size];
      env_action[i] = low + action[i] * (high_[i % size] - low);
    }
  }

  std::vector<Learned> layers() const override { return {{layer_, 2 * action_size()}}; }

  void evaluate(const LearnedRows& rows, const Done& done, float* log_prob, float* entropy) const override {
    const std::size_t size = action_size();
    float* const alphas = rows.scratch.floats(kConcentrations, 2 * size);
    const float* const betas = alphas + size;
    for (std::size_t row = 0; row < rows.count; ++row) {
      const float* const raw = rows.given[0].data + row * rows.given[0].stride;
      float* const log_prob_slopes = slopes(rows, kLogProbSlopes, row);
      float* const entropy_slopes = slopes(rows, kEntropySlopes, row);
      to_concentrations(raw, alphas, 2 * size);
      double log_prob_sum = 0, entropy_sum = 0;
      for (std::size_t j = 0; j < size; ++j) {
        const BetaElement element(alphas[j], betas[j], std::clamp(done.action[row * size + j], kEdge, kOtherEdge));
        log_prob_sum += element.log_prob;
        entropy_sum += element.entropy;
        const double alpha_slope = sigmoid(raw[j]), beta_slope = sigmoid(raw[size + j]);
        log_prob_slopes[j] = static_cast<float>(element.log_prob_by_alpha * alpha_slope);
        log_prob_slopes[size + j] = static_cast<float>(element.log_prob_by_beta * beta_slope);
        entropy_slopes[j] = static_cast<float>(element.entropy_by_alpha * alpha_slope);
        entropy_slopes[size + j] = static_cast<float>(element.entropy_by_beta * beta_slope);
      }
      log_prob[row] = static_cast<float>(log_prob_sum);
      entropy[row] = static_cast<float>(entropy_sum);
    }
  }

  void gradient(const LearnedRows& rows, const Done&, const float* by_log_prob, const float* by_entropy,
                const GivenGradient& out) const override {
    for (std::size_t row = 0; row < rows.count; ++row) {
      const float* const log_prob_slopes = slopes(rows, kLogProbSlopes, row);
      const float* const entropy_slopes = slopes(rows, kEntropySlopes, row);
      float* const to = out.given[0] + row * rows.given[0].stride;
      for (std::size_t j = 0; j < 2 * action_size(); ++j) {
        to[j] = by_log_prob[row] * log_prob_slopes[j] + by_entropy[row] * entropy_slopes[j];
      }
    }
  }

 private:
  enum LearningSlot : std::size_t { kConcentrations, kLogProbSlopes, kEntropySlopes };

  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

  /// 1 + softplus; may be in place.
  void to_concentrations(const float* raw, float* concentrations, std::size_t count) const {
    kernels_.softplus(raw, concentrations, count);
    for (std::size_t i = 0; i < count; ++i) concentrations[i] += 1;
  }

  /// The kept buffer of a row: derivatives by the outputs of the layer.
  float* slopes(const LearnedRows& rows, std::size_t slot, std::size_t row) const {
    const std::size_t size = 2 * action_size();
    return rows.scratch.floats(slot, rows.count * size) + row * size;
  }

  /// Eight uniforms become normals, the next eight stay uniform, and so on.
  void shape_noise(std::size_t rows, float* uniforms) const override {
    for (std::size_t i = 0; i < rows * noise_size(); i += 2 * kAttempts) box_muller(uniforms + i, kAttempts);
  }

  void sample_row(const float* alphas, const RowNoise& noise, float* action, float* log_prob) const {
    const float* const betas = alphas + action_size();
    double sum = 0;
    for (std::size_t j = 0; j < action_size(); ++j) {
      const double first = sample_gamma(alphas[j], noise, j * kNoise);
      const double second = sample_gamma(betas[j], noise, j * kNoise + kNoise / 2);
      action[j] = std::clamp(static_cast<float>(first / (first + second)), kEdge, kOtherEdge);
      sum += BetaElement(alphas[j], betas[j], action[j]).log_prob;
    }
    *log_prob = static_cast<float>(sum);
  }

  std::vector<float> low_, high_;
  std::string layer_;
  Layer concentrations_;
};

const RegisteredPart<Head, BetaHead> kBeta{"beta"};

}  // namespace
}  // namespace surefoot
