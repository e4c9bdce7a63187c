// Policies from Python: a plan as a plain dict, weights by name, rows of arrays.
#include "surefoot/policy.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "arrays.hpp"
#include "named_tensors.hpp"
#include "policy_plan.hpp"
#include "surefoot/kernels.hpp"
#include "surefoot/parts/critic.hpp"
#include "surefoot/parts/encoder.hpp"
#include "surefoot/parts/memory.hpp"
#include "surefoot/parts/term.hpp"
#include "surefoot/parts/transform.hpp"
#include "surefoot/philox.hpp"

namespace surefoot {
namespace {

constexpr std::size_t kMostNumbers = std::size_t{1} << 30;

/// The number of elements of a shape, if it is reasonable.
std::size_t count_of(const Shape& shape) {
  std::size_t count = 1;
  for (const std::size_t size : shape) {
    if (size > kMostNumbers / std::max(count, std::size_t{1})) {
      throw nb::value_error("more than 2^30 numbers are requested at once");
    }
    count *= size;
  }
  return count;
}

void require_weights(const Policy& policy) {
  if (!policy.is_synced()) throw nb::value_error("the policy has no weights yet; call sync first");
}

struct Leaves {
  std::size_t rows;
  std::vector<const float*> data;
};

/// Reads one [rows, size] array per key, all with the same number of rows.
Leaves leaves_of(const Policy& policy, const std::vector<nb::object>& obs) {
  const std::vector<ObsPlan>& plan = policy.plan().obs;
  if (obs.size() != plan.size()) {
    throw nb::value_error(
        ("obs must be " + std::to_string(plan.size()) + " arrays, not " + std::to_string(obs.size())).c_str());
  }
  nb::ndarray<const float> first;
  const bool is_array = nb::try_cast(obs[0], first, false) && first.ndim() == 2;
  Leaves leaves{is_array ? first.shape(0) : 0, {}};
  for (std::size_t i = 0; i < obs.size(); ++i) {
    const std::string name = "obs[" + std::to_string(i) + "]" + (plan[i].key.empty() ? "" : " (" + plan[i].key + ")");
    leaves.data.push_back(checked<const float>(obs[i], name, {leaves.rows, plan[i].size}));
  }
  return leaves;
}

/// Reads one flag per row, if there are any.
const bool* starts_of(nb::handle episode_start, std::size_t rows) {
  return episode_start.is_none() ? nullptr : checked<const bool>(episode_start, "episode_start", {rows});
}

nb::tuple act(const Policy& policy, const std::vector<nb::object>& obs, nb::handle mask,
              const std::vector<nb::object>& state, nb::handle episode_start, const NoiseKey& key) {
  require_weights(policy);
  const auto [rows, leaves] = leaves_of(policy, obs);
  const std::vector<float*> states = checked_parts<float>(state, "state", {rows}, policy.state_sizes());
  const bool* const starts = starts_of(episode_start, rows);
  const bool* allowed = nullptr;
  if (!mask.is_none()) {
    if (policy.mask_size() == 0) throw nb::value_error("mask: the policy's action space does not support masks");
    allowed = checked<const bool>(mask, "mask", {rows, policy.mask_size()});
  }
  const Shape shape{rows, policy.action_size()};
  std::vector<float> log_prob(rows), value(rows), action(policy.is_discrete() ? 0 : count_of(shape));
  std::vector<std::int64_t> choice(policy.is_discrete() ? count_of(shape) : 0);
  {
    const nb::gil_scoped_release released;
    Workspace workspace;
    const std::vector<const float*> carried(states.begin(), states.end());
    policy.act(rows, leaves, {carried, starts}, allowed, key, workspace,
               {action.data(), choice.data(), log_prob.data(), value.data(), states});
  }
  const nb::object actions =
      policy.is_discrete() ? nb::cast(owned(std::move(choice), shape)) : nb::cast(owned(std::move(action), shape));
  return nb::make_tuple(actions, owned(std::move(log_prob)), owned(std::move(value)));
}

NumpyArray<float> value(const Policy& policy, const std::vector<nb::object>& obs, const std::vector<nb::object>& state,
                        nb::handle episode_start) {
  require_weights(policy);
  const auto [rows, leaves] = leaves_of(policy, obs);
  const auto states = checked_parts<const float>(state, "state", {rows}, policy.state_sizes());
  const bool* const starts = starts_of(episode_start, rows);
  std::vector<float> value(rows);
  {
    const nb::gil_scoped_release released;
    Workspace workspace;
    policy.value(rows, leaves, {states, starts}, workspace, value.data());
  }
  return owned(std::move(value));
}

NumpyArray<float> to_env(const Policy& policy,
                         nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu> action) {
  if (policy.is_discrete())
    throw nb::value_error("action: discrete actions need no conversion other than the env's start");
  const Shape shape{action.shape(0), policy.action_size()};
  if (action.shape(1) != shape[1]) {
    throw nb::value_error(("action must have " + std::to_string(shape[1]) + " columns").c_str());
  }
  std::vector<float> env_action(count_of(shape));
  policy.head().to_env(shape[0], action.data(), env_action.data());
  return owned(std::move(env_action), shape);
}

NumpyArray<float> noise(const Policy& policy, std::size_t rows, const NoiseKey& key) {
  const Shape shape{rows, policy.head().noise_size()};
  std::vector<float> noise(count_of(shape));
  policy.head().noise(rows, key, noise.data());
  return owned(std::move(noise), shape);
}

NumpyArray<float> uniform_array(const NoiseKey& key, std::size_t rows, std::size_t count) {
  std::vector<float> drawn(count_of({rows, count}));
  uniforms(key.seed, key.step, key.first_row, rows, count, key.stream, drawn.data());
  return owned(std::move(drawn), {rows, count});
}

template <class Role>
nb::list kinds_of() {
  nb::list kinds;
  for (const auto& [kind, make] : known_parts<Role>()) kinds.append(kind);
  return kinds;
}

nb::dict part_kinds() {
  nb::dict kinds;
  kinds["encoder"] = kinds_of<Encoder>();
  kinds["distribution"] = kinds_of<Head>();
  kinds["memory"] = kinds_of<Memory>();
  kinds["critic"] = kinds_of<Critic>();
  kinds["term"] = kinds_of<Term>();
  kinds["gradient transform"] = kinds_of<Transform>();
  return kinds;
}

nb::list instruction_sets() {
  nb::list names;
  for (const Kernels* available : available_kernels()) names.append(available->name);
  return names;
}

}  // namespace
}  // namespace surefoot

void bind_policy(nanobind::module_& module) {
  namespace nb = nanobind;
  using namespace nb::literals;
  using namespace surefoot;

  constexpr auto kAction = static_cast<std::uint32_t>(Stream::kAction);
  nb::class_<Policy>(module, "Policy", "A policy that the core runs.")
      .def(
          "__init__",
          [](Policy* policy, const nb::dict& plan, const std::string& instructions) {
            new (policy) Policy(policy_plan(plan), kernels_of(instructions));
          },
          "plan"_a, "instructions"_a = "",
          "Build from a plan; `instructions` selects an instruction set instead of the best one.")
      .def(
          "sync", [](Policy& policy, const nb::dict& tensors) { policy.sync(named_tensors(tensors)); }, "tensors"_a,
          "Load new weights by name; if some do not fit, the error lists them and nothing changes.")
      .def(
          "act",
          [](const Policy& policy, const std::vector<nb::object>& obs, nb::object mask,
             const std::vector<nb::object>& state, nb::object episode_start, std::uint64_t seed, std::uint64_t step,
             std::uint64_t first_row, std::uint32_t stream) {
            return act(policy, obs, mask, state, episode_start, {seed, step, first_row, stream});
          },
          "obs"_a, "mask"_a = nb::none(), nb::kw_only(), "state"_a = nb::make_tuple(), "episode_start"_a = nb::none(),
          "seed"_a, "step"_a, "first_row"_a = 0, "stream"_a = kAction,
          "Raw actions, log-probs and values of rows; `state` is the recurrent state, one array per tensor, updated in "
          "place.")
      .def("value", &value, "obs"_a, nb::kw_only(), "state"_a = nb::make_tuple(), "episode_start"_a = nb::none(),
           "Values of rows in raw units; `state` is unchanged.")
      .def("to_env", &to_env, "action"_a, "Convert raw Box actions to env actions.")
      .def(
          "noise",
          [](const Policy& policy, std::size_t rows, std::uint64_t seed, std::uint64_t step, std::uint64_t first_row,
             std::uint32_t stream) { return noise(policy, rows, {seed, step, first_row, stream}); },
          "rows"_a, nb::kw_only(), "seed"_a, "step"_a, "first_row"_a = 0, "stream"_a = kAction,
          "The uniforms from which `act` samples these rows.")
      .def_prop_ro("is_discrete", &Policy::is_discrete)
      .def_prop_ro("is_synced", &Policy::is_synced)
      .def_prop_ro("action_size", &Policy::action_size)
      .def_prop_ro("noise_size", [](const Policy& policy) { return policy.head().noise_size(); })
      .def_prop_ro("mask_size", &Policy::mask_size)
      .def_prop_ro("state_sizes", &Policy::state_sizes,
                   "Numbers per row of each tensor of the recurrent state; empty without memory.")
      .def_prop_ro("instructions", [](const Policy& policy) { return policy.kernels().name; });
  module.def(
      "part_kinds", &part_kinds,
      "The kinds of encoders, distributions, memories, critics, terms and gradient transforms that the core supports.");
  module.def(
      "instructions", [] { return kernels().name; },
      "The instruction set of this process: SUREFOOT_INSTRUCTIONS, or the best that this machine supports.");
  module.def("instruction_sets", &instruction_sets, "Instruction sets that this machine supports, the best last.");
  module.def(
      "uniforms",
      [](std::uint64_t seed, std::uint64_t step, std::uint64_t first_row, std::size_t rows, std::size_t count,
         std::uint32_t stream) { return uniform_array({seed, step, first_row, stream}, rows, count); },
      "seed"_a, "step"_a, "first_row"_a, "rows"_a, "count"_a, "stream"_a = kAction,
      "Uniforms [rows, count], equal to those of surefoot.philox.");
}
