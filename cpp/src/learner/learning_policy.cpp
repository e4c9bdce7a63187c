#include "learning_policy.hpp"

#include <algorithm>
#include <stdexcept>

namespace surefoot {

namespace {

/// Maximum memory of large observations and their gradients, and the minimum number of samples that are still learned
/// from together.
constexpr std::size_t kPieceFloats = std::size_t{1} << 23;
constexpr std::size_t kLeastRows = 32;

}  // namespace

void LearningPart::build(const Kernels& kernels, const std::vector<Learned>& layers,
                         const std::vector<Learned>& vectors, Wire& latent, std::deque<Dense>& all) {
  if (layers.size() > Rows::kMost || vectors.size() > Rows::kMost) {
    throw std::invalid_argument("a part of a policy has more than 8 layers or vectors");
  }
  for (const Learned& layer : layers) {
    const LayerNames names{layer.name + ".weight", layer.name + ".bias"};
    layers_.emplace_back(all.emplace_back(kernels, names, latent.value->size, layer.size), latent);
  }
  for (const Learned& vector : vectors) {
    vectors_.emplace_back(vector.name, vector.size);
    vector_sizes_.push_back(vector.size);
  }
}

void LearningPart::bind(const TensorReader& tensors, const FlatMemory& memory) {
  for (FreeVector& vector : vectors_) vector.parameter.bind(tensors, memory);
}

void LearningPart::reserve(std::size_t rows) {
  for (FreeVector& vector : vectors_) vector.grad.reserve(rows);
}

void LearningPart::forward(Block block) const {
  for (const TakingLayer& layer : layers_) layer.forward(block);
}

void LearningPart::backward(Block block) const {
  for (const TakingLayer& layer : layers_) layer.backward(block);
}

LearningPart::Rows LearningPart::rows(Block block) {
  Rows rows{};
  rows.num_given = layers_.size();
  rows.num_vectors = vectors_.size();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    rows.given[i] = layers_[i].layer->out.view(block.first);
    rows.grad_given[i] = layers_[i].layer->grad.row(block.first);
  }
  for (std::size_t i = 0; i < vectors_.size(); ++i) {
    rows.vectors[i] = vectors_[i].parameter.value;
    rows.grad_vectors[i] = vectors_[i].parameter.learns ? vectors_[i].grad.row(block.first) : nullptr;
  }
  return rows;
}

LearningPolicy::LearningPolicy(const PolicyPlan& policy_plan, const TensorReader& tensors, const Kernels& set)
    : plan(policy_plan), kernels(set), head(make_part<Head>(plan.head, kernels)) {
  for (const ObsPlan& leaf : plan.obs) {
    Matrix& matrix = obs.emplace_back(leaf.size, rounded_up(leaf.size, kernels.panel));
    obs_wires.push_back({&matrix, nullptr});
  }
  // In the order of the backward pass, as far as two layers take the same wire: the first writes the gradient, the
  // others add to it.
  build_body(plan.actor, tensors, nullptr, actor);
  head_part.build(kernels, head->layers(), head->vectors(), actor.trunk->out(), layers);
  if (!plan.shares_trunk) build_body(plan.critic, tensors, &actor.cells->out(), other);
  Wire& latent = plan.shares_trunk ? actor.trunk->out() : other.trunk->out();
  for (const ValuePlan& value : plan.values) {
    LearningCritic& made = critics.emplace_back();
    made.critic = make_part<Critic>(value.critic, kernels);
    made.trunk.emplace(kernels, plan.activation, value.trunk, tensors, latent, layers);
    made.part.build(kernels, made.critic->layers(), made.critic->vectors(), made.trunk->out(), layers);
  }
}

void LearningPolicy::build_body(const BodyPlan& body_plan, const TensorReader& tensors, Wire* actor_memory,
                                LearningBody& body) {
  std::vector<Wire*> inputs;
  if (body_plan.takes_actor_memory) inputs.push_back(actor_memory);
  for (const EncoderPlan& encoder : body_plan.encoders) {
    LearningEncoder& made =
        body.encoders.emplace_back(kernels, plan.activation, encoder.encoder, tensors, obs_wires[encoder.obs], layers);
    inputs.push_back(&made.out());
  }
  body.features.emplace(kernels, std::move(inputs));
  body.memory = make_part<Memory>(body_plan.memory, kernels);
  body.cells.emplace(kernels, *body.memory, body.features->out(), layers);
  if (body.cells->num_layers() > 0) {
    remembering.push_back({&*body.cells, state_sizes.size()});
    for (const std::size_t size : body.memory->state_sizes()) state_sizes.push_back(size);
  }
  body.trunk.emplace(kernels, plan.activation, body_plan.trunk, tensors, body.cells->out(), layers);
}

void LearningPolicy::bind(const TensorReader& tensors, const FlatMemory& memory) {
  for (Dense& layer : layers) layer.bind(tensors, memory);
  for (LearningBody* body : {&actor, &other}) {
    for (LearningEncoder& encoder : body->encoders) encoder.bind(tensors, memory);
  }
  head_part.bind(tensors, memory);
  for (LearningCritic& one : critics) {
    one.part.bind(tensors, memory);
    one.critic->pack(tensors);
  }
}

void LearningPolicy::reserve(std::size_t rows, std::size_t sequences) {
  for (Matrix& matrix : obs) matrix.reserve(rows);
  for (Dense& layer : layers) layer.reserve(rows);
  for (LearningBody* body : {&actor, &other}) {
    if (!body->trunk) continue;
    for (LearningEncoder& encoder : body->encoders) encoder.reserve(rows);
    body->features->reserve(rows);
    body->cells->reserve(rows, sequences);
    body->trunk->reserve(rows);
  }
  head_part.reserve(rows);
  for (LearningCritic& one : critics) {
    one.trunk->reserve(rows);
    one.part.reserve(rows);
  }
}

void LearningPolicy::encode(Block block, Scratch scratch) {
  for (LearningBody* body : {&actor, &other}) {
    if (!body->trunk) continue;
    for (LearningEncoder& encoder : body->encoders) encoder.forward(block, scratch);
    const bool waits_for_memory = body == &other && plan.critic.takes_actor_memory;
    if (!waits_for_memory) body->features->forward(block);
  }
}

void LearningPolicy::run_trunks(Block block) {
  actor.trunk->forward(block);
  head_part.forward(block);
  if (!plan.shares_trunk) {
    if (plan.critic.takes_actor_memory) other.features->forward(block);
    other.trunk->forward(block);
  }
  for (LearningCritic& one : critics) {
    one.trunk->forward(block);
    one.part.forward(block);
  }
}

void LearningPolicy::back_through_trunks(Block block) {
  head_part.backward(block);
  // Critics may take the output or the input of the actor's trunk: in both cases, the actor claimed the wire first.
  if (!plan.shares_trunk) actor.trunk->backward(block);
  for (LearningCritic& one : critics) {
    one.part.backward(block);
    one.trunk->backward(block);
  }
  if (plan.shares_trunk) return actor.trunk->backward(block);
  other.trunk->backward(block);
  if (plan.critic.takes_actor_memory) other.features->backward(block);
}

void LearningPolicy::back_through_encoders(Block block, Scratch scratch) {
  for (LearningBody* body : {&actor, &other}) {
    if (!body->trunk) continue;
    const bool is_done = body == &other && plan.critic.takes_actor_memory;
    if (!is_done) body->features->backward(block);
    for (LearningEncoder& encoder : body->encoders) encoder.backward(block, scratch);
  }
}

std::size_t LearningPolicy::piece_rows(std::size_t most) const {
  std::size_t floats = 0;
  for (const LearningBody* body : {&actor, &other}) {
    for (const LearningEncoder& encoder : body->encoders) floats += encoder.encoder().sample_floats();
  }
  return floats == 0 ? most : std::clamp(kPieceFloats / floats, std::min(kLeastRows, most), most);
}

}  // namespace surefoot
