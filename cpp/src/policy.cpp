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
  require(!body.encoders.empty(), "a body needs an encoder");
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
  if (!plan.shares_trunk) check_body(plan, plan.critic);
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

void Policy::act(std::size_t rows, ObsLeaves obs, const bool* mask, const NoiseKey& noise, Workspace& workspace,
                 const Acted& acted) const {
  require_weights(is_synced());
  for_chunks(rows, [&](std::size_t first, std::size_t count) {
    const Pass pass(*this, obs, first, count, workspace);
    const std::size_t action = first * action_size();
    const NoiseKey key{noise.seed, noise.step, noise.first_row + first, noise.stream};
    const Acted part{acted.action ? acted.action + action : nullptr, acted.choice ? acted.choice + action : nullptr,
                     acted.log_prob + first, acted.value + first};
    const MatrixView latent = pass.body(weights_->actor);
    pass.sample(latent, mask ? mask + first * mask_size() : nullptr, key, part);
    pass.value(plan_.shares_trunk ? latent : pass.body(weights_->critic), part.value);
  });
}

void Policy::value(std::size_t rows, ObsLeaves obs, Workspace& workspace, float* value) const {
  require_weights(is_synced());
  for_chunks(rows, [&](std::size_t first, std::size_t count) {
    const Pass pass(*this, obs, first, count, workspace);
    pass.value(pass.body(plan_.shares_trunk ? weights_->actor : weights_->critic), value + first);
  });
}

}  // namespace surefoot
