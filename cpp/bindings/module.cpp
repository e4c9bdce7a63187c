// The Python module `surefoot.native._core`: argument checks, no logic.
#include <mujoco/mujoco.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "surefoot/env.hpp"
#include "surefoot/library.hpp"
#include "surefoot/rows.hpp"

namespace nb = nanobind;

void bind_engine(nb::module_& module);
void bind_learner(nb::module_& module);
void bind_network(nb::module_& module);
void bind_objects(nb::module_& module);
void bind_policy(nb::module_& module);
void bind_recurrence(nb::module_& module);
void bind_statistics(nb::module_& module);
void bind_threads(nb::module_& module);

namespace {

/// Raises the failure of an env as the Python exception for failing envs.
void translate_failure(const std::exception_ptr& thrown, void*) {
  const auto raise = [](const char* message) {
    PyErr_SetString(nb::module_::import_("surefoot.errors").attr("EnvError").ptr(), message);
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const surefoot::EnvFailure& failure) {
    raise(failure.what());
  } catch (const std::exception&) {  // nanobind's to translate
    throw;
  } catch (...) {
    raise(
        "a native environment threw something other than a std::exception before its first reset; throw a"
        " std::invalid_argument that says what is wrong");
  }
}

std::pair<std::size_t, std::size_t> footprint(const std::string& env_id,
                                              const std::map<std::string, surefoot::Option>& options,
                                              const std::string& library) {
  auto env = surefoot::make_env_from(library, env_id, surefoot::Options(options));
  const auto [filled, reserved] = surefoot::Rows(std::move(env), 1, {}).footprint();
  return {filled, reserved};
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() = "Surefoot's C++ core: environments, policies and whole rollouts.";
  module.def("env_ids", &surefoot::env_ids, "Ids of all native environments, sorted.");
  module.def("library_envs", &surefoot::library_envs, nb::arg("library"),
             "Ids and time limits of the environments in a library.");
  module.def("footprint", &footprint, nb::arg("env_id"), nb::arg("options"), nb::arg("library") = "",
             "Memory of each environment: bytes in use, and bytes of reserved address space.");
  module.def(
      "mujoco_versions", [] { return std::pair(mjVERSION_HEADER, mj_version()); },
      "The MuJoCo version the core was built with, and the one that is loaded.");
  nb::register_exception_translator(translate_failure);
  bind_objects(module);
  bind_policy(module);
  bind_network(module);
  bind_threads(module);
  bind_recurrence(module);
  bind_statistics(module);
  bind_engine(module);
  bind_learner(module);
}
