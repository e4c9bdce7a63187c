// Policies of CartPole's shapes with weights made up.
#pragma once

#include <limits>

#include "made_up.hpp"
#include "surefoot/policy.hpp"

namespace surefoot {

/// 4 observations, perhaps a memory, 8 hidden units, 2 choices, one value.
struct SmallPolicy {
  Policy policy;

  explicit SmallPolicy(const CellsPlan& memory = {}) : policy(plan(memory)) {
    MadeUp made_up;
    made_up.add_memory(memory, 4);
    made_up.add_linear("trunk", 8, memory.hidden > 0 ? memory.hidden : 4);
    made_up.add_linear("head", 2, 8);
    made_up.add_linear("value", 1, 8);
    policy.sync(made_up.tensors());
  }

  static PolicyPlan plan(const CellsPlan& memory) {
    PolicyPlan plan;
    plan.obs = {{"", 4, "", std::numeric_limits<float>::infinity()}};
    plan.actor = {{{0}}, {{"trunk"}}, memory.part()};
    plan.shares_trunk = true;
    plan.head = categorical("head", 2);
    plan.values = {{scalar("value")}};
    return plan;
  }
};

}  // namespace surefoot
