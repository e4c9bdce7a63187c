// The Python module `surefoot.native._core`: argument checks, no logic.
#include <mujoco/mujoco.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "surefoot/env.hpp"

namespace nb = nanobind;

void bind_engine(nb::module_& module);
void bind_policy(nb::module_& module);
void bind_recurrence(nb::module_& module);

NB_MODULE(_core, module) {
  module.doc() = "Surefoot's C++ core: environments, policies and whole rollouts.";
  module.def("env_ids", &surefoot::env_ids, "Ids of all native environments, sorted.");
  module.def(
      "mujoco_versions", [] { return std::pair(mjVERSION_HEADER, mj_version()); },
      "The MuJoCo version the core was built with, and the one that is loaded.");
  bind_policy(module);
  bind_recurrence(module);
  bind_engine(module);
}
