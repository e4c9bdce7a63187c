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
    policy.sync(made_up.named());
  }

  static PolicyPlan plan(const CellsPlan& memory) {
    PolicyPlan plan = plain_plan(4, categorical("head", 2));
    plan.actor = {{{0}}, {{"trunk"}}, memory.part()};
    return plan;
  }
};

}  // namespace surefoot
