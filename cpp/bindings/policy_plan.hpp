// A policy's plan from the plain dict that surefoot.policies.native_plan makes.
#pragma once

#include <nanobind/nanobind.h>

#include "surefoot/policy.hpp"

namespace surefoot {

/// Reads the plan of a policy. Throws ValueError or TypeError that names the entry.
PolicyPlan policy_plan(const nanobind::dict& plain);
/// Reads the plan of one part; `path` prefixes the names in messages.
PartPlan part_plan(const nanobind::dict& plain, const std::string& path);

}  // namespace surefoot
