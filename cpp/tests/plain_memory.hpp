// Policies that remember, worked out one row at a time in double precision.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "made_up.hpp"
#include "surefoot/policy.hpp"

namespace surefoot {

using Numbers = std::vector<double>;

/// Whose memory the critic judges by.
enum class CriticBody { kShared, kOwn, kBranch, kBareBranch };
/// The actor sees 3 numbers through an encoder; 2 more are for the critic if it sees for itself.
struct Remembering {
  PolicyPlan plan;
  CellsPlan actor, critic;
  MadeUp made_up;

  Remembering(const std::string& kind, std::size_t layers, std::size_t hidden, CriticBody body) {
    actor = {kind, layers, hidden, "actor_cells"};
    const float no_clip = std::numeric_limits<float>::infinity();
    plan.obs = {{"seen", 3, "", no_clip}, {"secret", 2, "", no_clip}};
    plan.actor = {{{0, {"mlp", {{"layers", std::vector<std::string>{"encoder"}}}}}}, {{"actor_trunk"}}, actor.part()};
    plan.shares_trunk = body == CriticBody::kShared;
    std::size_t remembered = hidden;
    if (body == CriticBody::kOwn) {
      critic = {kind, layers, hidden, "critic_cells"};
      plan.critic = {{{0}, {1}}, {{"critic_trunk"}}, critic.part()};
      made_up.add_memory(critic, 5);
    } else if (body == CriticBody::kBranch) {
      plan.critic = {{{1}}, {{"critic_trunk"}}, {"none"}, true};
      remembered += 2;
    } else if (body == CriticBody::kBareBranch) {
      plan.critic = {{}, {{"critic_trunk"}}, {"none"}, true};
    }
    plan.head = categorical("logits", 3);
    plan.values = {{scalar("value")}};
    made_up.add_linear("encoder", 5, 3);
    made_up.add_memory(actor, 5);
    made_up.add_linear("actor_trunk", 6, hidden);
    if (!plan.shares_trunk) made_up.add_linear("critic_trunk", 6, remembered);
    made_up.add_linear("logits", 3, 6);
    made_up.add_linear("value", 1, 6);
  }
};

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

inline Numbers product(const NamedTensor& weight, const NamedTensor& bias, const Numbers& in) {
  Numbers out(weight.shape[0]);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = bias.data[i];
    for (std::size_t j = 0; j < in.size(); ++j) out[i] += static_cast<double>(weight.data[i * in.size() + j]) * in[j];
  }
  return out;
}

/// One row of a policy, worked out the plain way.
struct PlainRow {
  const Remembering& of;
  std::vector<Numbers> state;  // one a tensor

  Numbers network(const MlpPlan& plan, Numbers values) const {
    for (const std::string& layer : plan.layers) {
      values = product(of.made_up[layer + ".weight"], of.made_up[layer + ".bias"], values);
      for (double& value : values) value = std::tanh(value);
    }
    return values;
  }

  Numbers remember(const CellsPlan& plan, Numbers x, std::size_t first_tensor) {
    const std::size_t size = plan.hidden;
    for (std::size_t layer = 0; layer < plan.layers; ++layer) {
      const std::string index = std::to_string(layer);
      double* const h = state[first_tensor].data() + layer * size;
      const Numbers from_x =
          product(of.made_up[plan.name + ".weight_ih_l" + index], of.made_up[plan.name + ".bias_ih_l" + index], x);
      const Numbers from_h = product(of.made_up[plan.name + ".weight_hh_l" + index],
                                     of.made_up[plan.name + ".bias_hh_l" + index], Numbers(h, h + size));
      for (std::size_t i = 0; i < size; ++i) {
        const auto gate = [&](std::size_t k) { return from_x[k * size + i] + from_h[k * size + i]; };
        if (plan.kind == "gru") {
          const double z = sigmoid(gate(1));
          const double n = std::tanh(from_x[2 * size + i] + sigmoid(gate(0)) * from_h[2 * size + i]);
          h[i] = (1 - z) * n + z * h[i];
        } else {
          double& c = state[first_tensor + 1][layer * size + i];
          c = sigmoid(gate(1)) * c + sigmoid(gate(0)) * std::tanh(gate(2));
          h[i] = sigmoid(gate(3)) * std::tanh(c);
        }
      }
      x.assign(h, h + size);
    }
    return x;
  }

  struct Step {
    Numbers logits;
    double value;
  };

  Step step(const Numbers& seen, const Numbers& secret) {
    const PolicyPlan& plan = of.plan;
    const Numbers remembered = remember(of.actor, network({{"encoder"}}, seen), 0);
    const Numbers actor = network(plan.actor.trunk, remembered);
    Numbers critic = actor;
    if (!plan.shares_trunk) {
      critic = plan.critic.takes_actor_memory ? remembered : seen;
      if (!plan.critic.encoders.empty()) critic.insert(critic.end(), secret.begin(), secret.end());
      if (!plan.critic.takes_actor_memory) {
        critic = remember(of.critic, critic, of.actor.num_tensors());
      }
      critic = network(plan.critic.trunk, critic);
    }
    return {product(of.made_up["logits.weight"], of.made_up["logits.bias"], actor),
            product(of.made_up["value.weight"], of.made_up["value.bias"], critic)[0]};
  }
};

}  // namespace surefoot
