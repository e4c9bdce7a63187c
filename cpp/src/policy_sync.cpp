// New weights: everything is checked before anything changes.
#include <algorithm>

#include "policy_weights.hpp"

namespace surefoot {

namespace {

std::size_t check_network(TensorReader& tensors, const MlpPlan& plan, std::size_t size) {
  for (const std::string& layer : plan.layers) size = tensors.check_linear(layer, size);
  return size;
}

/// Checks an encoder and returns its output size.
std::size_t check_encoder(TensorReader& tensors, const EncoderPart& part) {
  for (const EncoderTensor& tensor : part.encoder->tensors()) tensors.check_shape(tensor.name, tensor.shape);
  return check_network(tensors, {part.encoder->layers()}, part.own_size.value_or(part.obs_size));
}

/// Output sizes of a body, as far as the tensors determine them.
struct BodySizes {
  std::size_t remembered, latent;
};

BodySizes check_body(TensorReader& tensors, const BodyPlan& plan, const Body& body, std::size_t actor_remembered) {
  std::size_t features = plan.takes_actor_memory ? actor_remembered : 0;
  for (const EncoderPart& encoder : body.encoders) {
    const std::size_t size = check_encoder(tensors, encoder);
    features = features == kUnknownSize || size == kUnknownSize ? kUnknownSize : features + size;
  }
  body.memory->check(tensors, features);
  const std::size_t remembered = body.memory->output_size(features);
  return {remembered, check_network(tensors, plan.trunk, remembered)};
}

void copy(const NamedTensor& tensor, std::size_t size, AlignedFloats& to) {
  to.resize(size);
  std::copy_n(tensor.data, size, to.data());
}

/// Checks a network and returns its output size for inputs of `size`.
std::size_t pack_network(const TensorReader& tensors, const Kernels& kernels, const MlpPlan& plan, std::size_t size,
                         Network& network) {
  network.layers.resize(plan.layers.size());
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    network.layers[i].pack(kernels, tensors, plan.layers[i]);
    size = network.layers[i].out();
  }
  return size;
}

void pack_encoder(const TensorReader& tensors, const Kernels& kernels, EncoderPart& part) {
  const std::vector<EncoderTensor> own = part.encoder->tensors();
  part.tensors.resize(own.size());
  part.values.clear();
  for (std::size_t i = 0; i < own.size(); ++i) {
    std::size_t size = 1;
    for (const std::size_t length : own[i].shape) size *= length;
    copy(tensors[own[i].name], size, part.tensors[i]);
    part.values.push_back(part.tensors[i].data());
  }
  part.output_size =
      pack_network(tensors, kernels, {part.encoder->layers()}, part.own_size.value_or(part.obs_size), part.layers);
}

void pack_body(const TensorReader& tensors, const Kernels& kernels, const BodyPlan& body_plan,
               std::size_t actor_remembered, Body& body) {
  body.feature_size = body_plan.takes_actor_memory ? actor_remembered : 0;
  for (EncoderPart& part : body.encoders) {
    pack_encoder(tensors, kernels, part);
    body.feature_size += part.output_size;
  }
  body.memory->pack(tensors);
  body.remembered_size = body.memory->output_size(body.feature_size);
  pack_network(tensors, kernels, body_plan.trunk, body.remembered_size, body.trunk);
}

}  // namespace

void Policy::check_tensors(TensorReader& tensors) const {
  for (const ObsPlan& obs : plan_.obs) {
    if (obs.normalizer.empty()) continue;
    tensors.check_size(obs.normalizer + ".shift", obs.size);
    tensors.check_size(obs.normalizer + ".scale", obs.size);
  }
  const BodySizes actor = check_body(tensors, plan_.actor, weights_->actor, 0);
  std::size_t critic_latent = actor.latent;
  if (!plan_.shares_trunk) {
    critic_latent = check_body(tensors, plan_.critic, weights_->critic, actor.remembered).latent;
  }
  weights_->head->check(tensors, actor.latent);
  for (std::size_t i = 0; i < plan_.values.size(); ++i) {
    weights_->values[i].critic->check(tensors, check_network(tensors, plan_.values[i].trunk, critic_latent));
  }
  tensors.throw_problems();
}

void Policy::sync(std::span<const NamedTensor> named) {
  TensorReader tensors(named);
  check_tensors(tensors);
  Weights& weights = *weights_;
  weights.obs.resize(plan_.obs.size());
  for (std::size_t i = 0; i < plan_.obs.size(); ++i) {
    const ObsPlan& obs = plan_.obs[i];
    if (obs.normalizer.empty()) continue;
    copy(tensors[obs.normalizer + ".shift"], obs.size, weights.obs[i].shift);
    copy(tensors[obs.normalizer + ".scale"], obs.size, weights.obs[i].scale);
  }
  pack_body(tensors, kernels_, plan_.actor, 0, weights.actor);
  if (!plan_.shares_trunk) {
    pack_body(tensors, kernels_, plan_.critic, weights.actor.remembered_size, weights.critic);
  }
  weights.head->pack(tensors);
  for (std::size_t i = 0; i < plan_.values.size(); ++i) {
    pack_network(tensors, kernels_, plan_.values[i].trunk, 0, weights.values[i].trunk);
    weights.values[i].critic->pack(tensors);
  }
  weights.is_synced = true;
}

}  // namespace surefoot
