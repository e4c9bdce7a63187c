#include "policy_pass.hpp"

#include <algorithm>

#include "beta.hpp"

namespace surefoot {

namespace {

enum Slot : std::size_t { kNormalized, kFeatures, kEven, kOdd, kHead, kStd, kNoise, kScratch };

}  // namespace

Policy::Pass::Pass(const Policy& policy, ObsLeaves obs, std::size_t first, std::size_t rows, Workspace& workspace)
    : policy_(policy),
      plan_(policy.plan_),
      kernels_(policy.kernels_),
      weights_(*policy.weights_),
      obs_(obs),
      first_(first),
      rows_(rows),
      workspace_(workspace) {
  std::size_t floats = 0;
  for (const ObsPlan& part : plan_.obs) floats += part.normalizer.empty() ? 0 : rows * part.size;
  normalized_ = workspace.floats(kNormalized, floats);
  float* out = normalized_;
  for (std::size_t i = 0; i < plan_.obs.size(); ++i) {
    const ObsPlan& part = plan_.obs[i];
    if (part.normalizer.empty()) continue;
    const ObsStatistics& statistics = weights_.obs[i];
    kernels_.normalize({statistics.shift.data(), statistics.scale.data(), part.clip}, rows, part.size,
                       obs[i] + first * part.size, out);
    out += rows * part.size;
  }
}

MatrixView Policy::Pass::prepared(std::size_t obs) const {
  const ObsPlan& part = plan_.obs[obs];
  if (part.normalizer.empty()) return {obs_[obs] + first_ * part.size, part.size};
  const float* data = normalized_;
  for (std::size_t i = 0; i < obs; ++i) data += plan_.obs[i].normalizer.empty() ? 0 : rows_ * plan_.obs[i].size;
  return {data, part.size};
}

MatrixView Policy::Pass::body(const Body& body) const {
  return network(body.trunk, body.is_plain ? prepared(body.encoders[0].obs) : features(body));
}

MatrixView Policy::Pass::features(const Body& body) const {
  float* const all = workspace_.floats(kFeatures, rows_ * body.feature_size);
  float* column = all;
  for (const Encoder& encoder : body.encoders) {
    const MatrixView encoded = network(encoder.network, prepared(encoder.obs));
    for (std::size_t row = 0; row < rows_; ++row) {
      std::copy_n(encoded.data + row * encoded.stride, encoder.output_size, column + row * body.feature_size);
    }
    column += encoder.output_size;
  }
  return {all, body.feature_size};
}

MatrixView Policy::Pass::network(const Network& network, MatrixView in) const {
  std::size_t slot = kEven;
  for (const Layer& layer : network.layers) {
    const std::size_t floats = rows_ * layer.stride();
    float* const out = workspace_.floats(slot, floats);
    layer.run(kernels_, rows_, in, out);
    kernels_.activate(plan_.activation, out, floats);
    in = {out, layer.stride()};
    slot = slot == kEven ? kOdd : kEven;
  }
  return in;
}

MatrixView Policy::Pass::head(const Layer& layer, MatrixView latent, std::size_t slot) const {
  float* const out = workspace_.floats(slot, rows_ * layer.stride());
  layer.run(kernels_, rows_, latent, out);
  return {out, layer.stride()};
}

void Policy::Pass::value(MatrixView latent, float* value) const {
  const MatrixView prediction = head(weights_.value, latent, kHead);
  for (std::size_t row = 0; row < rows_; ++row) {
    value[row] = prediction.data[row * prediction.stride] * weights_.value_scale + weights_.value_shift;
  }
}

void Policy::Pass::sample(MatrixView latent, const bool* mask, const NoiseKey& noise, const Acted& acted) const {
  if (is_gaussian(plan_.head.kind)) return sample_gaussian(latent, noise, acted);
  if (plan_.head.kind != Distribution::kBeta) return sample_choices(latent, mask, noise, acted);
  const MatrixView raw = head(weights_.head, latent, kHead);
  float* const concentrations = workspace_.floats(kHead, rows_ * raw.stride);
  kernels_.softplus(raw.data, concentrations, rows_ * raw.stride);
  for (std::size_t i = 0; i < rows_ * raw.stride; ++i) concentrations[i] += 1;
  sample_beta(rows_, policy_.action_size(), raw, noise, acted.action, acted.log_prob);
}

void Policy::Pass::sample_gaussian(MatrixView latent, const NoiseKey& key, const Acted& acted) const {
  const std::size_t noise_size = policy_.noise_size();
  float* const noise = workspace_.floats(kNoise, rows_ * noise_size);
  policy_.noise(rows_, key, noise);
  kernels_.gaussian({.rows = rows_,
                     .size = policy_.action_size(),
                     .mean = head(weights_.head, latent, kHead),
                     .std = plan_.head.std_layer.empty() ? MatrixView{weights_.std.data(), 0} : state_std(latent),
                     .noise = {noise, noise_size},
                     .squash = plan_.head.kind == Distribution::kTanhGaussian,
                     .action = acted.action,
                     .log_prob = acted.log_prob});
}

MatrixView Policy::Pass::state_std(MatrixView latent) const {
  const MatrixView raw = head(weights_.std_head, latent, kStd);
  float* const std = workspace_.floats(kStd, rows_ * raw.stride);
  for (std::size_t row = 0; row < rows_; ++row) {
    for (std::size_t j = 0; j < weights_.log_std.size(); ++j) std[row * raw.stride + j] += weights_.log_std.data()[j];
  }
  kernels_.exp(std, std, rows_ * raw.stride);
  for (std::size_t i = 0; i < rows_ * raw.stride; ++i) std[i] += plan_.head.std_floor;
  return raw;
}

void Policy::Pass::sample_choices(MatrixView latent, const bool* mask, const NoiseKey& key, const Acted& acted) const {
  const std::vector<std::int64_t>& sizes = plan_.head.sizes;
  float* const noise = workspace_.floats(kNoise, rows_ * sizes.size());
  policy_.noise(rows_, key, noise);
  const auto most = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  const ChoiceBlock block{.rows = rows_,
                          .count = sizes.size(),
                          .sizes = sizes.data(),
                          .logits = head(weights_.head, latent, kHead),
                          .mask = mask,
                          .noise = {noise, sizes.size()},
                          .scratch = workspace_.floats(kScratch, most * kernels_.lanes),
                          .choice = acted.choice,
                          .log_prob = acted.log_prob};
  (plan_.head.kind == Distribution::kBernoulli ? kernels_.bernoulli : kernels_.categorical)(block);
}

}  // namespace surefoot
