#include "policy_pass.hpp"

#include <algorithm>
#include <cmath>

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
  for (const ObsPlan& leaf : plan_.obs) floats += leaf.normalizer.empty() ? 0 : rows * leaf.size;
  normalized_ = workspace.floats(kNormalized, floats);
  float* out = normalized_;
  for (std::size_t i = 0; i < plan_.obs.size(); ++i) {
    const ObsPlan& leaf = plan_.obs[i];
    if (leaf.normalizer.empty()) continue;
    const ObsStatistics& statistics = weights_.obs[i];
    kernels_.normalize({statistics.shift.data(), statistics.scale.data(), leaf.clip}, rows, leaf.size,
                       obs[i] + first * leaf.size, out);
    out += rows * leaf.size;
  }
}

MatrixView Policy::Pass::prepared(std::size_t obs) const {
  const ObsPlan& leaf = plan_.obs[obs];
  if (leaf.normalizer.empty()) return {obs_[obs] + first_ * leaf.size, leaf.size};
  const float* data = normalized_;
  for (std::size_t i = 0; i < obs; ++i) data += plan_.obs[i].normalizer.empty() ? 0 : rows_ * plan_.obs[i].size;
  return {data, leaf.size};
}

MatrixView Policy::Pass::actor_features(std::span<float* const> next) const {
  return remember(weights_.actor, features(plan_.actor, weights_.actor, {}), next);
}

MatrixView Policy::Pass::critic_features(MatrixView actor_features, std::span<float* const> next) const {
  return remember(weights_.critic, features(plan_.critic, weights_.critic, actor_features), next);
}

MatrixView Policy::Pass::features(const BodyPlan& plan, const Body& body, MatrixView before) const {
  if (body.encoders.empty()) return before;
  if (body.encoders.size() == 1 && !plan.takes_actor_memory) return encoded(body.encoders[0]);
  float* const all = workspace_.floats(kFeatures, rows_ * body.feature_size);
  float* column = all;
  const auto append = [&](MatrixView from, std::size_t size) {
    for (std::size_t row = 0; row < rows_; ++row) {
      std::copy_n(from.data + row * from.stride, size, column + row * body.feature_size);
    }
    column += size;
  };
  if (plan.takes_actor_memory) append(before, weights_.actor.remembered_size);
  for (const EncoderPart& part : body.encoders) append(encoded(part), part.output_size);
  return {all, body.feature_size};
}

MatrixView Policy::Pass::encoded(const EncoderPart& part) const {
  MatrixView in = prepared(part.obs);
  if (part.own_size) {
    const std::size_t size = *part.own_size;
    float* const out = workspace_.floats(kOwn, rows_ * size);
    float* const kept = workspace_.floats(kKept, part.kept_size);
    std::fill_n(kept, part.kept_size, 0.0f);
    part.encoder->forward({rows_, in, part.values, kept, 0, {workspace_, kEncoder}}, out, size);
    in = {out, size};
  }
  return network(part.layers, in, kEncodedEven);
}

MatrixView Policy::Pass::network(const Network& network, MatrixView in, std::size_t slot) const {
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const Layer& layer = network.layers[i];
    const std::size_t floats = rows_ * layer.stride();
    float* const out = workspace_.floats(slot + i % 2, floats);
    layer.run(kernels_, rows_, in, out);
    kernels_.activate(plan_.activation, out, floats);
    in = {out, layer.stride()};
  }
  return in;
}

void Policy::Pass::value(MatrixView latent, float* value, float* prediction) const {
  const std::size_t stride = prediction == nullptr ? 0 : policy_.prediction_size();
  float* const others = workspace_.floats(kValues, rows_);
  for (std::size_t i = 0; i < weights_.values.size(); ++i) {
    const Critic& critic = *weights_.values[i].critic;
    const MatrixView predicted = critic.predict(rows_of(network(weights_.values[i].trunk, latent, kOwnEven)));
    critic.value(rows_, predicted, i == 0 ? value : others);
    for (std::size_t row = 0; i > 0 && row < rows_; ++row) {
      if (others[row] < value[row] || std::isnan(others[row])) value[row] = others[row];
    }
    if (prediction == nullptr) continue;
    critic.decode(rows_, predicted, prediction, stride);
    prediction += critic.prediction_size();
  }
}

MatrixView Policy::Pass::remember(const Body& body, MatrixView in, std::span<float* const> next) const {
  StateRows state;
  for (std::size_t tensor = 0; tensor < body.num_tensors; ++tensor) {
    const std::size_t index = body.first_tensor + tensor;
    float* const before = carried(index);
    state.before[tensor] = before;
    state.after[tensor] = next.empty() ? before : next[index] + first_ * policy_.state_sizes_[index];
  }
  return body.memory->step(rows_of(in), state);
}

float* Policy::Pass::carried(std::size_t tensor) const {
  const std::size_t size = policy_.state_sizes_[tensor];
  const float* const from = state_.tensors[tensor] + first_ * size;
  float* const copy = workspace_.floats(kState + tensor, rows_ * size);
  std::copy_n(from, rows_ * size, copy);
  if (state_.episode_start == nullptr) return copy;
  for (std::size_t row = 0; row < rows_; ++row) {
    if (state_.episode_start[first_ + row]) std::fill_n(copy + row * size, size, 0.0f);
  }
  return copy;
}

}  // namespace surefoot
