// The bounds of Box actions, one number per element.
#pragma once

#include <vector>

#include "surefoot/parts/plan.hpp"

namespace surefoot {

inline std::vector<float> lower_bounds(const PartPlan& plan) {
  std::vector<float> low = plan.floats("low");
  if (low.empty()) plan.refuse("low", "must have a number for each element of the action");
  return low;
}

inline std::vector<float> upper_bounds(const PartPlan& plan) {
  std::vector<float> high = plan.floats("high");
  if (high.size() != plan.floats("low").size()) plan.refuse("high", "must have as many numbers as low");
  return high;
}

}  // namespace surefoot
