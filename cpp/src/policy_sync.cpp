// New weights: everything is checked before anything changes.
#include <algorithm>

#include "policy_weights.hpp"

namespace surefoot {

namespace {

std::size_t check_network(TensorReader& tensors, const MlpPlan& plan, std::size_t size) {
  for (const std::string& layer : plan.layers) size = tensors.check_linear(layer, size);
  return size;
}

/// Gives the size of an encoder's output.
std::size_t check_encoder(TensorReader& tensors, const EncoderPlan& plan, std::size_t obs_size) {
  if (plan.image.layers.empty()) return check_network(tensors, plan.network, obs_size);
  ImageSize size = plan.image.size;
  for (const ConvolutionPlan& layer : plan.image.layers) {
    size = convolved(size, layer, tensors.check_convolution(layer.layer, size.channels, layer.kernel));
  }
  return check_network(tensors, plan.network, size.channels == kUnknownSize ? kUnknownSize : size.floats());
}

/// Sizes of what a body gives, as far as the tensors say.
struct BodySizes {
  std::size_t remembered, latent;
};

BodySizes check_body(TensorReader& tensors, const PolicyPlan& plan, const BodyPlan& body, const Memory& memory,
                     std::size_t actor_remembered) {
  std::size_t features = body.takes_actor_memory ? actor_remembered : 0;
  for (const EncoderPlan& encoder : body.encoders) {
    const std::size_t size = check_encoder(tensors, encoder, plan.obs[encoder.obs].size);
    features = features == kUnknownSize || size == kUnknownSize ? kUnknownSize : features + size;
  }
  memory.check(tensors, features);
  const std::size_t remembered = memory.output_size(features);
  return {remembered, check_network(tensors, body.trunk, remembered)};
}

void copy(const NamedTensor& tensor, std::size_t size, AlignedFloats& to) {
  to.resize(size);
  std::copy_n(tensor.data, size, to.data());
}

/// Gives the size of the network's output for an input of `size`.
std::size_t pack_network(const TensorReader& tensors, const Kernels& kernels, const MlpPlan& plan, std::size_t size,
                         Network& network) {
  network.layers.resize(plan.layers.size());
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    network.layers[i].pack(kernels, tensors, plan.layers[i]);
    size = network.layers[i].out();
  }
  return size;
}

/// Gives the size of what the convolutions give for an observation of `size`.
std::size_t pack_convolutions(const TensorReader& tensors, const Kernels& kernels, const ImagePlan& plan,
                              std::size_t size, Encoder& encoder) {
  encoder.convolutions.clear();
  ImageSize image = plan.size;
  for (const ConvolutionPlan& layer : plan.layers) {
    const NamedTensor& weight = tensors[layer.layer + ".weight"];
    PackedConvolution& packed =
        encoder.convolutions.emplace_back(Convolution(kernels, image, weight.shape[0], layer.kernel, layer.stride));
    copy(weight, packed.shape.num_weights(), packed.weight);
    copy(tensors[layer.layer + ".bias"], weight.shape[0], packed.bias);
    image = packed.shape.out();
    size = image.floats();
  }
  return size;
}

void pack_body(const TensorReader& tensors, const Kernels& kernels, const PolicyPlan& plan, const BodyPlan& body_plan,
               std::size_t actor_remembered, Body& body) {
  body.encoders.resize(body_plan.encoders.size());
  body.feature_size = body_plan.takes_actor_memory ? actor_remembered : 0;
  for (std::size_t i = 0; i < body_plan.encoders.size(); ++i) {
    const EncoderPlan& encoder_plan = body_plan.encoders[i];
    Encoder& encoder = body.encoders[i];
    encoder.obs = encoder_plan.obs;
    const std::size_t size =
        pack_convolutions(tensors, kernels, encoder_plan.image, plan.obs[encoder.obs].size, encoder);
    encoder.output_size = pack_network(tensors, kernels, encoder_plan.network, size, encoder.network);
    body.feature_size += encoder.output_size;
  }
  body.is_plain = !body_plan.takes_actor_memory && body.encoders.size() == 1 && body.encoders[0].convolutions.empty() &&
                  body.encoders[0].network.layers.empty();
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
  const BodySizes actor = check_body(tensors, plan_, plan_.actor, *weights_->actor.memory, 0);
  std::size_t critic_latent = actor.latent;
  if (!plan_.shares_trunk) {
    critic_latent = check_body(tensors, plan_, plan_.critic, *weights_->critic.memory, actor.remembered).latent;
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
  pack_body(tensors, kernels_, plan_, plan_.actor, 0, weights.actor);
  if (!plan_.shares_trunk) {
    pack_body(tensors, kernels_, plan_, plan_.critic, weights.actor.remembered_size, weights.critic);
  }
  weights.head->pack(tensors);
  for (std::size_t i = 0; i < plan_.values.size(); ++i) {
    pack_network(tensors, kernels_, plan_.values[i].trunk, 0, weights.values[i].trunk);
    weights.values[i].critic->pack(tensors);
  }
  weights.is_synced = true;
}

}  // namespace surefoot
