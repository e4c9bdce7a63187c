// A policy's plan from the plain dict that surefoot.policies.native_plan makes.
#pragma once

#include <nanobind/nanobind.h>

#include "surefoot/policy.hpp"

namespace surefoot {

/// Throws ValueError or TypeError that names the entry.
PolicyPlan policy_plan(const nanobind::dict& plain);
/// The same for one part; `path` finds it in messages.
PartPlan part_plan(const nanobind::dict& plain, const std::string& path);

}  // namespace surefoot
