#include "surefoot/policy.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "beta.hpp"
#include "policy_pass.hpp"
#include "policy_weights.hpp"
#include "surefoot/box_muller.hpp"

namespace surefoot {

namespace {

/// Rows that go through all layers together: their activations stay in the nearest caches.
constexpr std::size_t kChunkRows = 48;

void require(bool holds, const char* problem) {
  if (!holds) throw std::invalid_argument(std::string("the plan of the policy: ") + problem);
}

void check_body(const PolicyPlan& plan, const BodyPlan& body) {
  require(!body.encoders.empty() || body.takes_actor_memory, "a body needs an encoder");
  require((body.memory.kind == MemoryKind::kNone) == (body.memory.part_size() == 0),
          "a memory has layers and a hidden size, and nothing else has them");
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
  require(!plan.actor.takes_actor_memory, "the actor cannot take its own memory");
  if (!plan.shares_trunk) {
    check_body(plan, plan.critic);
    require(!plan.critic.takes_actor_memory || plan.actor.memory.kind != MemoryKind::kNone, "the actor has no memory");
    require(!plan.critic.takes_actor_memory || plan.critic.memory.kind == MemoryKind::kNone,
            "a critic that takes the actor's memory has none of its own");
  }
  const HeadPlan& head = plan.head;
  const bool is_box = is_gaussian(head.kind) || head.kind == Distribution::kBeta;
  require(is_box || !head.sizes.empty(), "a discrete head needs sizes");
  require(!is_box || (!head.low.empty() && head.low.size() == head.high.size()), "a Box head needs low and high");
  require(head.kind != Distribution::kCategorical || head.sizes.size() == 1, "a categorical head has one size");
  for (const std::int64_t size : head.sizes) require(size > 0, "sizes are positive");
}

}  // namespace

bool is_gaussian(Distribution kind) { return kind == Distribution::kGaussian || kind == Distribution::kTanhGaussian; }

std::size_t head_outputs(const HeadPlan& head) {
  if (is_gaussian(head.kind)) return head.low.size();
  if (head.kind == Distribution::kBeta) return 2 * head.low.size();
  if (head.kind == Distribution::kBernoulli) return head.sizes.size();
  return static_cast<std::size_t>(std::accumulate(head.sizes.begin(), head.sizes.end(), std::int64_t{0}));
}

Policy::Policy(PolicyPlan plan, const Kernels& kernels)
    : plan_(std::move(plan)), kernels_(kernels), weights_(std::make_unique<Weights>()) {
  check(plan_);
  const auto add_parts = [&](const MemoryPlan& memory) {
    state_sizes_.insert(state_sizes_.end(), memory.num_parts(), memory.part_size());
  };
  add_parts(plan_.actor.memory);
  if (!plan_.shares_trunk) add_parts(plan_.critic.memory);
}

Policy::~Policy() = default;

const PolicyPlan& Policy::plan() const { return plan_; }

const Kernels& Policy::kernels() const { return kernels_; }

bool Policy::is_synced() const { return weights_->is_synced; }

bool Policy::is_discrete() const { return !is_gaussian(plan_.head.kind) && plan_.head.kind != Distribution::kBeta; }

std::size_t Policy::action_size() const { return is_discrete() ? plan_.head.sizes.size() : plan_.head.low.size(); }

std::size_t Policy::noise_size() const {
  if (is_gaussian(plan_.head.kind)) return action_size() + action_size() % 2;
  return plan_.head.kind == Distribution::kBeta ? kBetaNoise * action_size() : action_size();
}

std::size_t Policy::mask_size() const { return is_discrete() ? head_outputs(plan_.head) : 0; }

void Policy::noise(std::size_t rows, const NoiseKey& key, float* out) const {
  const std::size_t size = noise_size();
  kernels_.uniforms({key.seed, key.step, key.first_row, key.stream, rows, size}, out);
  if (is_gaussian(plan_.head.kind)) box_muller(out, rows * size);
  if (plan_.head.kind == Distribution::kBeta) {
    // Eight for normals, then eight that stay uniform, and so on.
    for (std::size_t i = 0; i < rows * size; i += 2 * kBetaAttempts) box_muller(out + i, kBetaAttempts);
  }
}

static void require_weights(bool is_synced) {
  if (!is_synced) throw std::logic_error("the policy has no weights yet; sync it first");
}

/// Call `function(first, count)` for chunks of nearly equal size.
template <typename Function>
static void for_chunks(std::size_t rows, Function function) {
  const std::size_t chunks = (rows + kChunkRows - 1) / kChunkRows;
  for (std::size_t i = 0, first = 0; i < chunks; ++i) {
    const std::size_t count = rows / chunks + (i < rows % chunks ? 1 : 0);
    function(first, count);
    first += count;
  }
}

void Policy::act(std::size_t rows, ObsLeaves obs, const CarriedState& state, const bool* mask, const NoiseKey& noise,
                 Workspace& workspace, const Acted& acted) const {
  require_weights(is_synced());
  for_chunks(rows, [&](std::size_t first, std::size_t count) {
    const Pass pass(*this, obs, state, first, count, workspace);
    const std::size_t action = first * action_size();
    const NoiseKey key{noise.seed, noise.step, noise.first_row + first, noise.stream};
    const Acted part{acted.action ? acted.action + action : nullptr, acted.choice ? acted.choice + action : nullptr,
                     acted.log_prob + first, acted.value + first};
    const MatrixView features = pass.actor_features(acted.state);
    const MatrixView latent = pass.trunk(weights_->actor, features);
    pass.sample(latent, mask ? mask + first * mask_size() : nullptr, key, part);
    pass.value(plan_.shares_trunk ? latent : pass.trunk(weights_->critic, pass.critic_features(features, acted.state)),
               part.value);
  });
}

void Policy::value(std::size_t rows, ObsLeaves obs, const CarriedState& state, Workspace& workspace,
                   float* value) const {
  require_weights(is_synced());
  for_chunks(rows, [&](std::size_t first, std::size_t count) {
    const Pass pass(*this, obs, state, first, count, workspace);
    const bool needs_actor = plan_.shares_trunk || plan_.critic.takes_actor_memory;
    const MatrixView actor = needs_actor ? pass.actor_features({}) : MatrixView{};
    pass.value(plan_.shares_trunk ? pass.trunk(weights_->actor, actor)
                                  : pass.trunk(weights_->critic, pass.critic_features(actor, {})),
               value + first);
  });
}

}  // namespace surefoot
