#include "policy_pass.hpp"

#include <algorithm>

#include "beta.hpp"

namespace surefoot {

Policy::Pass::Pass(const Policy& policy, ObsLeaves obs, const CarriedState& state, std::size_t first, std::size_t rows,
                   Workspace& workspace)
    : policy_(policy),
      plan_(policy.plan_),
      kernels_(policy.kernels_),
      weights_(*policy.weights_),
      obs_(obs),
      state_(state),
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

MatrixView Policy::Pass::actor_features(std::span<float* const> next) const {
  return remember(plan_.actor.memory, weights_.actor, 0, features(plan_.actor, weights_.actor, {}), next);
}

MatrixView Policy::Pass::critic_features(MatrixView actor_features, std::span<float* const> next) const {
  return remember(plan_.critic.memory, weights_.critic, plan_.actor.memory.num_parts(),
                  features(plan_.critic, weights_.critic, actor_features), next);
}

MatrixView Policy::Pass::features(const BodyPlan& plan, const Body& body, MatrixView before) const {
  if (body.is_plain) return prepared(body.encoders[0].obs);
  if (body.encoders.empty()) return before;
  float* const all = workspace_.floats(kFeatures, rows_ * body.feature_size);
  float* column = all;
  const auto append = [&](MatrixView from, std::size_t size) {
    for (std::size_t row = 0; row < rows_; ++row) {
      std::copy_n(from.data + row * from.stride, size, column + row * body.feature_size);
    }
    column += size;
  };
  if (plan.takes_actor_memory) append(before, plan_.actor.memory.hidden);
  for (const Encoder& encoder : body.encoders) {
    append(network(encoder.network, prepared(encoder.obs)), encoder.output_size);
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

MatrixView Policy::Pass::linear(const Layer& layer, MatrixView in, std::size_t slot) const {
  float* const out = workspace_.floats(slot, rows_ * layer.stride());
  layer.run(kernels_, rows_, in, out);
  return {out, layer.stride()};
}

void Policy::Pass::value(MatrixView latent, float* value) const {
  const MatrixView prediction = linear(weights_.value, latent, kHead);
  for (std::size_t row = 0; row < rows_; ++row) {
    value[row] = prediction.data[row * prediction.stride] * weights_.value_scale + weights_.value_shift;
  }
}

void Policy::Pass::sample(MatrixView latent, const bool* mask, const NoiseKey& noise, const Acted& acted) const {
  if (is_gaussian(plan_.head.kind)) return sample_gaussian(latent, noise, acted);
  if (plan_.head.kind != Distribution::kBeta) return sample_choices(latent, mask, noise, acted);
  const MatrixView raw = linear(weights_.head, latent, kHead);
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
                     .mean = linear(weights_.head, latent, kHead),
                     .std = plan_.head.std_layer.empty() ? MatrixView{weights_.std.data(), 0} : state_std(latent),
                     .noise = {noise, noise_size},
                     .squash = plan_.head.kind == Distribution::kTanhGaussian,
                     .action = acted.action,
                     .log_prob = acted.log_prob});
}

MatrixView Policy::Pass::state_std(MatrixView latent) const {
  const MatrixView raw = linear(weights_.std_head, latent, kStd);
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
                          .logits = linear(weights_.head, latent, kHead),
                          .mask = mask,
                          .noise = {noise, sizes.size()},
                          .scratch = workspace_.floats(kScratch, most * kernels_.lanes),
                          .choice = acted.choice,
                          .log_prob = acted.log_prob};
  (plan_.head.kind == Distribution::kBernoulli ? kernels_.bernoulli : kernels_.categorical)(block);
}

}  // namespace surefoot
