#include "surefoot/policy.hpp"

#include <algorithm>
#include <stdexcept>

#include "policy_pass.hpp"
#include "policy_weights.hpp"

namespace surefoot {

namespace {

/// Number of rows that go through all layers together, so that their activations stay in the nearest caches.
constexpr std::size_t kChunkRows = 48;

void require(bool holds, const char* problem) {
  if (!holds) throw std::invalid_argument(std::string("the plan of the policy: ") + problem);
}

void check_body(const PolicyPlan& plan, const BodyPlan& body) {
  require(!body.encoders.empty() || body.takes_actor_memory, "a body needs an encoder");
  for (const EncoderPlan& encoder : body.encoders) {
    require(encoder.obs < plan.obs.size(), "an encoder's obs is past the end of the list");
  }
}

void check(const PolicyPlan& plan) {
  for (const ObsPlan& obs : plan.obs) {
    require(obs.size > 0, "an observation has no elements");
    require(obs.clip > 0, "an observation's clip is not positive");
  }
  check_body(plan, plan.actor);
  require(!plan.values.empty(), "a policy needs a critic");
  require(!plan.actor.takes_actor_memory, "the actor cannot take its own memory");
  if (!plan.shares_trunk) check_body(plan, plan.critic);
}

}  // namespace

Policy::Policy(PolicyPlan plan, const Kernels& kernels)
    : plan_(std::move(plan)), kernels_(kernels), weights_(std::make_unique<Weights>()) {
  check(plan_);
  const auto add_parts = [&](const BodyPlan& body_plan, Body& body) {
    for (const EncoderPlan& encoder : body_plan.encoders) {
      body.encoders.emplace_back(encoder, plan_.obs[encoder.obs].size, kernels);
    }
    body.memory = make_part<Memory>(body_plan.memory, kernels);
    body.first_tensor = state_sizes_.size();
    const std::vector<std::size_t> sizes = body.memory->state_sizes();
    require(sizes.size() <= kMostStateTensors, "a memory's state has too many tensors");
    body.num_tensors = sizes.size();
    state_sizes_.insert(state_sizes_.end(), sizes.begin(), sizes.end());
    return !sizes.empty();
  };
  const bool actor_remembers = add_parts(plan_.actor, weights_->actor);
  if (!plan_.shares_trunk) {
    const bool critic_remembers = add_parts(plan_.critic, weights_->critic);
    const bool takes_actors = plan_.critic.takes_actor_memory;
    require(!takes_actors || actor_remembers, "the actor has no memory");
    require(!takes_actors || !critic_remembers, "a critic that uses the actor's memory must not define its own");
  }
  weights_->head = make_part<Head>(plan_.head, kernels);
  for (const ValuePlan& value : plan_.values) {
    weights_->values.push_back({{}, make_part<Critic>(value.critic, kernels)});
  }
}

Policy::~Policy() = default;

const PolicyPlan& Policy::plan() const { return plan_; }

const Kernels& Policy::kernels() const { return kernels_; }

bool Policy::is_synced() const { return weights_->is_synced; }

const Head& Policy::head() const { return *weights_->head; }

std::size_t Policy::prediction_size() const {
  std::size_t size = 0;
  for (const ValuePart& value : weights_->values) size += value.critic->prediction_size();
  return size;
}

static void require_weights(bool is_synced) {
  if (!is_synced) throw std::logic_error("the policy has no weights yet; sync it first");
}

/// Calls `function(first, count)` for chunks of nearly equal size.
template <typename Function>
static void for_chunks(std::size_t rows, Function function) {
  const std::size_t chunks = (rows + kChunkRows - 1) / kChunkRows;
  for (std::size_t i = 0, first = 0; i < chunks; ++i) {
    const std::size_t count = rows / chunks + (i < rows % chunks ? 1 : 0);
    function(first, count);
    first += count;
  }
}

// tour: act
void Policy::act(std::size_t rows, ObsLeaves obs, const CarriedState& state, const bool* mask, const NoiseKey& noise,
                 Workspace& workspace, const Acted& acted) const {
  require_weights(is_synced());
  const std::size_t action_size = head().action_size(), mask_size = head().mask_size();
  const std::size_t prediction_size = acted.prediction == nullptr ? 0 : this->prediction_size();
  for_chunks(rows, [&](std::size_t first, std::size_t count) {
    const Pass pass(*this, obs, state, first, count, workspace);
    const std::size_t action = first * action_size;
    const Sampled sampled{acted.action ? acted.action + action : nullptr,
                          acted.choice ? acted.choice + action : nullptr, acted.log_prob + first};
    const MatrixView features = pass.actor_features(acted.state);
    const MatrixView latent = pass.trunk(weights_->actor, features);
    head().sample(pass.rows_of(latent), mask ? mask + first * mask_size : nullptr, noise.from(first), sampled);
    if (acted.value == nullptr) return;
    pass.value(plan_.shares_trunk ? latent : pass.trunk(weights_->critic, pass.critic_features(features, acted.state)),
               acted.value + first, acted.prediction ? acted.prediction + first * prediction_size : nullptr);
  });
}
// tour: end

void Policy::value(std::size_t rows, ObsLeaves obs, const CarriedState& state, Workspace& workspace,
                   float* value) const {
  require_weights(is_synced());
  for_chunks(rows, [&](std::size_t first, std::size_t count) {
    const Pass pass(*this, obs, state, first, count, workspace);
    const bool needs_actor = plan_.shares_trunk || plan_.critic.takes_actor_memory;
    const MatrixView actor = needs_actor ? pass.actor_features({}) : MatrixView{};
    pass.value(plan_.shares_trunk ? pass.trunk(weights_->actor, actor)
                                  : pass.trunk(weights_->critic, pass.critic_features(actor, {})),
               value + first, nullptr);
  });
}

}  // namespace surefoot
