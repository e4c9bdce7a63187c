// New weights: everything is checked before anything changes.
#include <algorithm>

#include "policy_weights.hpp"
#include "tensor_reader.hpp"

namespace surefoot {

namespace {

std::size_t check_network(TensorReader& tensors, const MlpPlan& plan, std::size_t size) {
  for (const std::string& layer : plan.layers) size = tensors.check_linear(layer, size);
  return size;
}

/// The names of a recurrent layer's weight and bias, for what it takes from below or from its own past.
struct CellNames {
  std::string weight, bias;

  CellNames(const MemoryPlan& plan, const char* side, std::size_t layer)
      : weight(plan.name + ".weight_" + side + "_l" + std::to_string(layer)),
        bias(plan.name + ".bias_" + side + "_l" + std::to_string(layer)) {}
};

constexpr const char* kFromInput = "ih";
constexpr const char* kFromState = "hh";

/// The size of what the memory gives for an input of `size`.
std::size_t check_memory(TensorReader& tensors, const MemoryPlan& plan, std::size_t size) {
  const std::size_t gates = (plan.kind == MemoryKind::kGru ? 3 : 4) * plan.hidden;
  for (std::size_t layer = 0; layer < plan.layers; ++layer) {
    const CellNames input(plan, kFromInput, layer), state(plan, kFromState, layer);
    tensors.check_linear(input.weight, input.bias, size, gates);
    tensors.check_linear(state.weight, state.bias, plan.hidden, gates);
    size = plan.hidden;
  }
  return size;
}

/// The size of the body's latent features.
std::size_t check_body(TensorReader& tensors, const PolicyPlan& plan, const BodyPlan& body) {
  std::size_t features = body.takes_actor_memory ? plan.actor.memory.hidden : 0;
  for (const EncoderPlan& encoder : body.encoders) {
    const std::size_t size = check_network(tensors, encoder.network, plan.obs[encoder.obs].size);
    features = features == kUnknownSize || size == kUnknownSize ? kUnknownSize : features + size;
  }
  return check_network(tensors, body.trunk, check_memory(tensors, body.memory, features));
}

void check(TensorReader& tensors, const PolicyPlan& plan) {
  for (const ObsPlan& obs : plan.obs) {
    if (obs.normalizer.empty()) continue;
    tensors.check_size(obs.normalizer + ".shift", obs.size);
    tensors.check_size(obs.normalizer + ".scale", obs.size);
  }
  const std::size_t actor_latent = check_body(tensors, plan, plan.actor);
  const std::size_t critic_latent = plan.shares_trunk ? actor_latent : check_body(tensors, plan, plan.critic);
  const HeadPlan& head = plan.head;
  tensors.check_linear(head.layer, actor_latent, head_outputs(head));
  if (is_gaussian(head.kind)) {
    tensors.check_size(head.log_std, head.low.size());
    if (!head.std_layer.empty()) tensors.check_linear(head.std_layer, actor_latent, head.low.size());
  }
  tensors.check_linear(plan.value.layer, critic_latent, 1);
  if (!plan.value.returns.empty()) {
    tensors.check_size(plan.value.returns + ".shift", 1);
    tensors.check_size(plan.value.returns + ".scale", 1);
  }
  tensors.throw_problems();
}

void copy(const NamedTensor& tensor, std::size_t size, AlignedFloats& to) {
  to.resize(size);
  std::copy_n(tensor.data, size, to.data());
}

void pack(const TensorReader& tensors, const Kernels& kernels, const std::string& weight_name,
          const std::string& bias_name, Layer& layer) {
  const NamedTensor& weight = tensors[weight_name];
  layer.pack(kernels, weight.shape[1], weight.shape[0], weight.data, tensors[bias_name].data);
}

void pack(const TensorReader& tensors, const Kernels& kernels, const std::string& prefix, Layer& layer) {
  pack(tensors, kernels, prefix + ".weight", prefix + ".bias", layer);
}

void pack_memory(const TensorReader& tensors, const Kernels& kernels, const MemoryPlan& plan,
                 std::vector<Cell>& cells) {
  cells.resize(plan.layers);
  for (std::size_t layer = 0; layer < plan.layers; ++layer) {
    const CellNames input(plan, kFromInput, layer), state(plan, kFromState, layer);
    pack(tensors, kernels, input.weight, input.bias, cells[layer].input);
    pack(tensors, kernels, state.weight, state.bias, cells[layer].recurrent);
  }
}

/// Gives the size of the network's output for an input of `size`.
std::size_t pack_network(const TensorReader& tensors, const Kernels& kernels, const MlpPlan& plan, std::size_t size,
                         Network& network) {
  network.layers.resize(plan.layers.size());
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    pack(tensors, kernels, plan.layers[i], network.layers[i]);
    size = network.layers[i].out();
  }
  return size;
}

void pack_body(const TensorReader& tensors, const Kernels& kernels, const PolicyPlan& plan, const BodyPlan& body_plan,
               Body& body) {
  body.encoders.resize(body_plan.encoders.size());
  body.feature_size = body_plan.takes_actor_memory ? plan.actor.memory.hidden : 0;
  for (std::size_t i = 0; i < body_plan.encoders.size(); ++i) {
    const EncoderPlan& encoder_plan = body_plan.encoders[i];
    Encoder& encoder = body.encoders[i];
    encoder.obs = encoder_plan.obs;
    encoder.output_size =
        pack_network(tensors, kernels, encoder_plan.network, plan.obs[encoder.obs].size, encoder.network);
    body.feature_size += encoder.output_size;
  }
  body.is_plain = !body_plan.takes_actor_memory && body.encoders.size() == 1 && body.encoders[0].network.layers.empty();
  pack_memory(tensors, kernels, body_plan.memory, body.cells);
  pack_network(tensors, kernels, body_plan.trunk, body.feature_size, body.trunk);
}

}  // namespace

void Policy::sync(std::span<const NamedTensor> named) {
  TensorReader tensors(named);
  check(tensors, plan_);
  Weights& weights = *weights_;
  weights.obs.resize(plan_.obs.size());
  for (std::size_t i = 0; i < plan_.obs.size(); ++i) {
    const ObsPlan& obs = plan_.obs[i];
    if (obs.normalizer.empty()) continue;
    copy(tensors[obs.normalizer + ".shift"], obs.size, weights.obs[i].shift);
    copy(tensors[obs.normalizer + ".scale"], obs.size, weights.obs[i].scale);
  }
  pack_body(tensors, kernels_, plan_, plan_.actor, weights.actor);
  if (!plan_.shares_trunk) pack_body(tensors, kernels_, plan_, plan_.critic, weights.critic);
  const HeadPlan& head = plan_.head;
  pack(tensors, kernels_, head.layer, weights.head);
  if (is_gaussian(head.kind)) {
    const std::size_t size = head.low.size();
    copy(tensors[head.log_std], size, weights.log_std);
    weights.std.resize(size);
    kernels_.exp(weights.log_std.data(), weights.std.data(), size);
    for (std::size_t i = 0; i < size; ++i) weights.std.data()[i] += head.std_floor;
    if (!head.std_layer.empty()) pack(tensors, kernels_, head.std_layer, weights.std_head);
  }
  pack(tensors, kernels_, plan_.value.layer, weights.value);
  if (!plan_.value.returns.empty()) {
    weights.value_shift = *tensors[plan_.value.returns + ".shift"].data;
    weights.value_scale = *tensors[plan_.value.returns + ".scale"].data;
  }
  weights.is_synced = true;
}

}  // namespace surefoot
