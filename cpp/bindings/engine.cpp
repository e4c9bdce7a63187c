// The engine from Python.
#include "surefoot/engine.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <tuple>

#include "entries.hpp"
#include "signal_check.hpp"
#include "surefoot/library.hpp"

namespace surefoot {
namespace {

constexpr std::size_t kMostEnvs = 1 << 24, kMostThreads = 65536;

template <class Number, class Read>
NumpyArray<Number> column(const std::vector<FinishedEpisode>& episodes, const Read& read) {
  std::vector<Number> numbers;
  numbers.reserve(episodes.size());
  for (const auto& episode : episodes) numbers.push_back(static_cast<Number>(read(episode)));
  return owned(std::move(numbers));
}

/// Count, mean and variance.
template <class Count>
using Moments = std::tuple<Count, NumpyArray<double>, NumpyArray<double>>;

Moments<double> moments_of(const LeafMoments& moments) {
  return {moments.count, owned(moments.mean), owned(moments.variance)};
}

Moments<NumpyArray<double>> row_moments_of(const RolloutResult& result, std::size_t leaf) {
  const auto& [counts, mean, variance] = result.row_moments.at(leaf);
  const Shape shape{counts.size(), counts.empty() ? 0 : mean.size() / counts.size()};
  return {owned(counts), owned(mean, shape), owned(variance, shape)};
}

Moments<double> merged_moments(nb::handle counts, nb::handle means, nb::handle variances, std::size_t num_rows,
                               std::size_t size) {
  const double* count = checked<const double>(counts, "counts", {num_rows});
  const double* mean = checked<const double>(means, "means", {num_rows, size});
  const double* variance = checked<const double>(variances, "variances", {num_rows, size});
  LeafMoments moments;
  moments.mean.resize(size);
  moments.variance.resize(size);
  for (std::size_t row = 0; row < num_rows; ++row) {
    if (count[row] > 0) moments.merge(count[row], mean + row * size, variance + row * size);
  }
  return moments_of(moments);
}

std::vector<double*> leaves_of(Engine& engine, const std::vector<nb::object>& arrays, const char* name) {
  return checked_parts<double>(arrays, name, {engine.rows().size()}, engine.rows().obs_sizes());
}

bool* mask_of(Engine& engine, nb::handle mask, Shape lead) {
  if (mask.is_none()) return nullptr;
  lead.push_back(engine.rows().mask_size());
  return checked<bool>(mask, "action_mask", lead);
}

/// Actions of all rows: float32 for Box, int64 for all other spaces.
RowActions actions_of(Engine& engine, nb::handle actions, Shape lead) {
  lead.push_back(engine.rows().action_size());
  return engine.rows().action_space().has_choices()
             ? RowActions{nullptr, checked<const std::int64_t>(actions, "actions", lead)}
             : RowActions{checked<const float>(actions, "actions", lead), nullptr};
}

/// Locks the engine for this call; raises NativeError if another thread uses it.
class Exclusive {
 public:
  explicit Exclusive(Engine& engine) try : use_(engine) {
  } catch (const std::runtime_error& error) {
    PyErr_SetString(nb::module_::import_("surefoot.errors").attr("NativeError").ptr(), error.what());
    throw nb::python_error();
  }

 private:
  Engine::Use use_;
};

std::size_t steps_of(nb::handle array, const char* name) {
  nb::ndarray<nb::ro> given;
  if (!nb::try_cast(array, given, false) || given.ndim() == 0 || given.shape(0) == 0) {
    throw nb::value_error((std::string(name) + " must have at least one step").c_str());
  }
  return given.shape(0);
}

void reset(Engine& engine, nb::handle seeds, const std::vector<nb::object>& obs, nb::handle mask, nb::handle resting) {
  const std::size_t num_envs = engine.rows().num_envs();
  std::vector<Generator::Words> each;
  if (!seeds.is_none()) {
    const auto* words = checked<const std::uint64_t>(seeds, "seeds", {num_envs, 4});
    each.resize(num_envs);
    for (std::size_t env = 0; env < num_envs; ++env) std::copy_n(words + 4 * env, 4, each[env].begin());
  }
  StepSlot slot{};
  slot.obs = leaves_of(engine, obs, "obs");
  slot.mask = mask_of(engine, mask, {engine.rows().size()});
  if (!resting.is_none()) slot.resting = checked<const bool>(resting, "resting", {engine.rows().size()});
  const Exclusive exclusive(engine);
  const nb::gil_scoped_release release;
  engine.reset(each, slot);
}

void step(Engine& engine, nb::handle actions, const std::vector<nb::object>& obs,
          const std::vector<nb::object>& final_obs, const nb::dict& outcome, nb::handle mask) {
  const Rows& rows = engine.rows();
  const std::size_t count = rows.size();
  const Entries arrays(outcome);
  StepSlot slot{leaves_of(engine, obs, "obs"),
                leaves_of(engine, final_obs, "final_obs"),
                arrays.array<double>("reward", {count}),
                arrays.array<bool>("terminated", {count}),
                arrays.array<bool>("truncated", {count}),
                mask_of(engine, mask, {count})};
  slot.valid = arrays.array_or_null<bool>("valid", {count});
  slot.metrics = arrays.array_or_null<float>("metrics", {count, rows.metrics().size()});
  slot.poses = arrays.array_or_null<double>("poses", {rows.num_envs(), rows.pose_size()});
  slot.resting = arrays.array_or_null<bool>("resting", {count});
  const RowActions taken = actions_of(engine, actions, {count});
  const Exclusive exclusive(engine);
  const nb::gil_scoped_release release;
  engine.step(taken, slot);
}

/// Another policy as passed in: its number, the policy, the recurrent state of its rows, and whether it is followed.
using GivenPolicy = std::tuple<std::int64_t, const Policy*, std::vector<nb::object>, bool>;

/// Sets the arrays of the recurrent state, and of its copies at the steps at which sequences begin.
void add_state(RolloutArrays& arrays, const Policy& policy, const Entries& fields) {
  if (fields.has("state_steps")) {
    const auto steps = fields.numbers<const std::int64_t>("state_steps");
    arrays.state_steps.assign(steps.begin(), steps.end());  // a negative step becomes a huge one and is rejected
  }
  const auto& steps = arrays.state_steps;
  if (!std::is_sorted(steps.begin(), steps.end()) || (!steps.empty() && steps.back() >= arrays.num_steps)) {
    throw nb::value_error("state_steps must be steps of the rollout, in ascending order");
  }
  arrays.state = fields.parts<float>("memory", {arrays.num_rows}, policy.state_sizes());
  arrays.stored_state = fields.parts<float>("stored_state", {steps.size(), arrays.num_rows}, policy.state_sizes());
}

RolloutArrays arrays_of(const Rows& rows, const Policy& policy, const Entries& fields) {
  RolloutArrays arrays{};
  arrays.num_rows = rows.size();
  arrays.num_steps = steps_of(fields.alone("reward"), "reward");
  const Shape each{arrays.num_steps, rows.size()}, and_next{arrays.num_steps + 1, rows.size()}, row{rows.size()};
  const auto of = [](Shape lead, std::size_t size) {
    lead.push_back(size);
    return lead;
  };
  const Shape one = of(each, 1), actions = of(each, rows.action_size());
  arrays.obs = fields.parts<float>("obs", and_next, rows.obs_sizes());
  if (rows.mask_size() > 0) arrays.mask = fields.array<bool>("action_mask", of(and_next, rows.mask_size()));
  if (policy.is_discrete()) {
    arrays.choice = fields.array<std::int64_t>("action", actions);
  } else {
    arrays.action = fields.array<float>("action", actions);
  }
  arrays.log_prob = fields.array<float>("log_prob", one);
  arrays.value = fields.array<float>("value", one);
  arrays.prediction = fields.array_or_null<float>("prediction", of(each, policy.prediction_size()));
  arrays.reward = fields.array<float>("reward", one);
  arrays.final_value = fields.array<float>("final_value", one);
  arrays.terminated = fields.array<bool>("terminated", one);
  arrays.truncated = fields.array<bool>("truncated", one);
  arrays.episode_start = fields.array<bool>("episode_start", of(and_next, 1));
  arrays.actor = fields.array_or_null<std::int64_t>("actor", one);
  if (!rows.metrics().empty()) arrays.metrics = fields.array<float>("metrics", of(each, rows.metrics().size()));
  arrays.last_value = fields.array<float>("last_value", row);
  arrays.running_reward = fields.array<double>("running_reward", row);
  arrays.running_length = fields.array<std::int64_t>("running_length", row);
  arrays.acting = fields.array_or_null<std::int64_t>("acting", row);
  if (rows.num_agents() > 1 || arrays.acting != nullptr) arrays.valid = fields.array<bool>("valid", one);
  return arrays;
}

/// Whether the policy has as many choices as the space, counted from the same first ones.
bool has_choices_of(const Policy& policy, const ActionSpace& space) {
  if (policy.mask_size() != space.num_choices()) return false;
  const std::vector<std::int64_t> zeros(space.size());
  std::vector<std::int64_t> first(space.size());
  policy.head().choices_to_env(1, zeros.data(), first.data());
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i] != space.choices(i).first) return false;
  }
  return true;
}

void check_fit(const Rows& rows, const Policy& policy) {
  const auto& wanted = policy.plan().obs;
  bool fits = wanted.size() == rows.obs_parts().size();
  for (std::size_t leaf = 0; fits && leaf < wanted.size(); ++leaf) fits = wanted[leaf].size == rows.obs_sizes()[leaf];
  if (!fits) throw nb::value_error("policy: its observations differ from those of the environment");
  if (policy.action_size() != rows.action_size() || policy.is_discrete() != rows.action_space().has_choices()) {
    throw nb::value_error("policy: its actions have another kind or size than those of the environment");
  }
  if (policy.is_discrete() && !has_choices_of(policy, rows.action_space())) {
    throw nb::value_error("policy: its numbers of choices differ from those of the environment");
  }
}

/// Adds the other policies and their rows; rows may only be assigned to the given policies.
void add_others(RolloutArrays& arrays, const Rows& rows, const Entries& fields, const std::vector<GivenPolicy>& given) {
  std::set<std::int64_t> known{0};
  for (const auto& [number, policy, memory, is_followed] : given) {
    if (policy == nullptr || !policy->is_synced()) throw nb::value_error("others: a policy has no weights yet");
    check_fit(rows, *policy);
    if (number < 1 || !known.insert(number).second) throw nb::value_error("others: numbers must be unique, from 1 on");
    auto state = checked_parts<float>(memory, "memory of another policy", {rows.size()}, policy->state_sizes());
    arrays.others.push_back({number, policy, std::move(state), is_followed});
  }
  if (arrays.acting == nullptr) return;
  arrays.wanted = fields.array<const std::int64_t>("wanted", {rows.size()});
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (known.contains(arrays.acting[row]) && known.contains(arrays.wanted[row])) continue;
    throw nb::value_error("acting and wanted must be 0 or the number of one of the others");
  }
}

/// Sets the bounds of the leaves of the observation, and which leaves the policy normalizes.
RolloutKey key_of(const Rows& rows, const Policy& policy) {
  RolloutKey key{};
  for (const ObsPart& leaf : rows.obs_parts()) {
    const auto is_finite = [](double bound) { return std::isfinite(bound); };
    const auto& [low, high] = leaf.bounds;
    const bool is_bounded =
        std::any_of(low.begin(), low.end(), is_finite) || std::any_of(high.begin(), high.end(), is_finite);
    const auto filled = [&](const std::vector<double>& bounds) {
      std::vector<float> each(bounds.begin(), bounds.end());
      if (is_bounded && each.size() == 1) each.resize(leaf.size(), each[0]);
      return is_bounded ? each : std::vector<float>{};
    };
    key.low.push_back(filled(low));
    key.high.push_back(filled(high));
  }
  for (const ObsPlan& leaf : policy.plan().obs) key.with_moments.push_back(!leaf.normalizer.empty());
  return key;
}

RolloutResult collect(Engine& engine, const Policy& policy, const nb::dict& given, std::uint64_t seed,
                      std::uint64_t first_step, std::uint64_t first_row, std::uint32_t stream,
                      const std::vector<GivenPolicy>& others) {
  const Rows& rows = engine.rows();
  // tour: binding
  check_fit(rows, policy);
  const Entries fields(given);
  RolloutArrays arrays = arrays_of(rows, policy, fields);
  add_state(arrays, policy, fields);
  add_others(arrays, rows, fields, others);
  RolloutKey key = key_of(rows, policy);
  std::tie(key.seed, key.first_step, key.first_row, key.stream) = std::tie(seed, first_step, first_row, stream);
  const Exclusive exclusive(engine);
  RolloutResult result;
  {
    const nb::gil_scoped_release release;
    result = engine.collect(policy, arrays, key, SignalCheck());
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return result;
  // tour: end
}

void replay(Engine& engine, nb::handle actions, nb::handle ended) {
  const std::size_t num_steps = steps_of(ended, "ended"), count = engine.rows().size();
  const bool* ends = checked<const bool>(ended, "ended", {num_steps, count});
  const RowActions taken = actions_of(engine, actions, {num_steps, count});
  const Exclusive exclusive(engine);
  const nb::gil_scoped_release release;
  engine.replay(num_steps, taken, ends);
}

NumpyArray<double> save(Engine& engine) {
  const Exclusive exclusive(engine);
  Rows& rows = engine.rows();
  std::vector<double> states(rows.num_envs() * rows.state_size());
  for (std::size_t env = 0; env < rows.num_envs(); ++env) rows.save(env, states.data() + env * rows.state_size());
  return owned(std::move(states), {rows.num_envs(), rows.state_size()});
}

const double* states_of(Engine& engine, nb::handle state) {
  return checked<const double>(state, "state", {engine.rows().num_envs(), engine.rows().state_size()});
}

void load(Engine& engine, nb::handle state) {
  const double* states = states_of(engine, state);
  const Exclusive exclusive(engine);
  engine.rows().load_all(states);
}

void check(Engine& engine, nb::handle state) {
  const double* states = states_of(engine, state);
  const Exclusive exclusive(engine);
  engine.rows().check_all(states);
}

/// Number of values of a parameter: one per env, or a single one for agent parameters.
std::size_t num_values_of(const Rows& rows, std::size_t index) {
  if (index >= rows.parameters().size()) throw nb::index_error("the environment has no such parameter");
  return rows.parameters()[index].is_of_agent ? 1 : rows.num_envs();
}

/// Sets a parameter in all envs; if one of them rejects its value, in none.
void set_parameter(Engine& engine, std::size_t index, nb::handle values) {
  Rows& rows = engine.rows();
  const std::size_t count = num_values_of(rows, index), size = size_of(rows.parameters()[index].shape);
  const auto* given = checked<const double>(values, "values", {count, size});
  const Exclusive exclusive(engine);
  std::vector<double> before;
  for (std::size_t env = 0; env < count; ++env) {
    const auto value = rows.parameter(env, index);
    before.insert(before.end(), value.begin(), value.end());
  }
  std::size_t env = 0;
  try {
    for (; env < count; ++env) rows.set_parameter(env, index, {given + env * size, size});
  } catch (...) {
    for (std::size_t done = 0; done < env; ++done) rows.set_parameter(done, index, {&before[done * size], size});
    throw;
  }
}

NumpyArray<double> parameter(Engine& engine, std::size_t index) {
  const Rows& rows = engine.rows();
  const std::size_t count = num_values_of(rows, index);
  std::vector<double> values;
  for (std::size_t env = 0; env < count; ++env) {
    const auto value = rows.parameter(env, index);
    values.insert(values.end(), value.begin(), value.end());
  }
  return owned(std::move(values), {count, size_of(rows.parameters()[index].shape)});
}

std::tuple<nb::bytes, double, NumpyArray<double>> scene(Engine& engine, std::size_t env) {
  if (env >= engine.rows().num_envs()) throw nb::index_error("there is no such env");
  const Exclusive exclusive(engine);
  const Scene scene = engine.rows().scene(env);
  std::vector<double> pose(engine.rows().pose_size());
  engine.rows().pose(env, pose.data());
  return {nb::bytes(scene.model.data(), scene.model.size()), scene.seconds_per_step, owned(std::move(pose))};
}

using LeafSpec = std::tuple<std::string, Shape, std::vector<double>, std::vector<double>>;

std::vector<LeafSpec> obs_parts(Engine& engine) {
  std::vector<LeafSpec> leaves;
  for (const auto& leaf : engine.rows().obs_parts()) {
    leaves.emplace_back(leaf.key, leaf.shape, leaf.bounds.low, leaf.bounds.high);
  }
  return leaves;
}

nb::dict action_space(Engine& engine) {
  const char* kinds[] = {"box", "discrete", "multi_discrete", "multi_binary"};
  const ActionSpace& space = engine.rows().action_space();
  nb::dict plain;
  plain["kind"] = kinds[static_cast<std::size_t>(space.kind)];
  plain["shape"] = nb::cast(space.shape);
  plain["low"] = nb::cast(space.bounds.low);
  plain["high"] = nb::cast(space.bounds.high);
  plain["sizes"] = nb::cast(space.sizes);
  plain["start"] = nb::cast(space.start);
  return plain;
}

std::vector<std::pair<std::string, std::string>> metrics(Engine& engine) {
  const char* summaries[] = {"last", "mean", "sum"};
  std::vector<std::pair<std::string, std::string>> named;
  for (const auto& metric : engine.rows().metrics()) {
    named.emplace_back(metric.name, summaries[static_cast<std::size_t>(metric.summary)]);
  }
  return named;
}

/// Name, shape, default values, and whether they belong to the agent.
std::vector<std::tuple<std::string, Shape, std::vector<double>, bool>> parameters(Engine& engine) {
  std::vector<std::tuple<std::string, Shape, std::vector<double>, bool>> named;
  for (const auto& each : engine.rows().parameters()) {
    named.emplace_back(each.name, each.shape, each.values, each.is_of_agent);
  }
  return named;
}

}  // namespace
}  // namespace surefoot

void bind_engine(nanobind::module_& module) {
  using namespace surefoot;
  nb::class_<NonFinite>(module, "NonFinite",
                        "The first place with NaN or infinity, or with a mask that forbids every choice.")
      .def_ro("step", &NonFinite::step)
      .def_ro("row", &NonFinite::row)
      .def_prop_ro("where",
                   [](const NonFinite& problem) {
                     const char* names[] = {"observation", "reward", "final observation", "action mask"};
                     return names[static_cast<std::size_t>(problem.where)];
                   })
      .def_ro("leaf", &NonFinite::leaf)
      .def_ro("index", &NonFinite::index)
      .def_ro("value", &NonFinite::value);
  nb::class_<RolloutResult>(module, "RolloutResult", "Statistics and errors of a rollout.")
      .def_ro("num_steps", &RolloutResult::num_steps)
      .def_ro("out_of_bounds", &RolloutResult::out_of_bounds)
      .def_ro("problem", &RolloutResult::problem)
      .def_prop_ro(
          "total_rewards",
          [](const RolloutResult& result) {
            return column<double>(result.episodes, [](const auto& one) { return one.total_reward; });
          },
          nb::rv_policy::move)
      .def_prop_ro(
          "lengths",
          [](const RolloutResult& result) {
            return column<std::int64_t>(result.episodes, [](const auto& one) { return one.length; });
          },
          nb::rv_policy::move)
      .def(
          "moments", [](const RolloutResult& result, std::size_t leaf) { return moments_of(result.moments.at(leaf)); },
          nb::arg("leaf"), "Count, mean and population variance of a leaf of the observation.")
      .def("row_moments", &row_moments_of, nb::arg("leaf"),
           "Count, mean and population variance of a leaf of the observation in each row.");
  module.def("merged_moments", &merged_moments, nb::arg("counts"), nb::arg("means"), nb::arg("variances"),
             nb::arg("num_rows"), nb::arg("size"),
             "The moments of all rows together, merged in the order of rows, as in a rollout.");
  nb::class_<Engine>(module, "Engine", "Steps environments on all cores.")
      .def(
          "__init__",
          [](Engine* self, const std::string& env_id, const std::map<std::string, Option>& options,
             std::size_t num_envs, std::size_t threads, std::size_t max_episode_steps, bool truncation_as_termination,
             const std::string& library) {
            if (num_envs == 0 || num_envs > kMostEnvs) throw nb::value_error("num_envs must be from 1 to 16777216");
            if (threads == 0 || threads > kMostThreads) throw nb::value_error("threads must be from 1 to 65536");
            auto rows = std::make_unique<Rows>(make_env_from(library, env_id, Options(options)), num_envs,
                                               Endings{max_episode_steps, truncation_as_termination});
            new (self) Engine(std::move(rows), threads);
          },
          nb::arg("env_id"), nb::arg("options"), nb::arg("num_envs"), nb::arg("threads"), nb::arg("max_episode_steps"),
          nb::arg("truncation_as_termination") = false, nb::arg("library") = "")
      .def_prop_ro("num_rows", [](Engine& engine) { return engine.rows().size(); })
      .def_prop_ro("threads", &Engine::threads)
      .def_prop_ro("num_envs", [](Engine& engine) { return engine.rows().num_envs(); })
      .def_prop_ro("num_agents", [](Engine& engine) { return engine.rows().num_agents(); })
      .def_prop_ro("obs_parts", &obs_parts)
      .def_prop_ro("obs_sizes", [](Engine& engine) { return engine.rows().obs_sizes(); })
      .def_prop_ro("action_space", &action_space)
      .def_prop_ro("metrics", &metrics)
      .def_prop_ro("parameters", &parameters)
      .def("set_parameter", &set_parameter, nb::arg("index"), nb::arg("values"))
      .def("parameter", &parameter, nb::arg("index"))
      .def_prop_ro("mask_size", [](Engine& engine) { return engine.rows().mask_size(); })
      .def("reset", &reset, nb::arg("seeds").none(), nb::arg("obs"), nb::arg("action_mask").none(),
           nb::arg("resting") = nb::none())
      .def("step", &step, nb::arg("actions"), nb::arg("obs"), nb::arg("final_obs"), nb::arg("outcome"),
           nb::arg("action_mask").none())
      .def("collect", &collect, nb::arg("policy"), nb::arg("fields"), nb::arg("seed"), nb::arg("first_step"),
           nb::arg("first_row"), nb::arg("stream"), nb::arg("others") = nb::make_tuple(),
           "A rollout into the arrays of `fields`, one list of leaves per name. `others` are policies that act in the"
           " rows with their numbers in the fields `acting` and, from their next episode on, `wanted`.")
      .def("replay", &replay, nb::arg("actions"), nb::arg("ended"))
      .def("scene", &scene, nb::arg("env"),
           "For rendering: MuJoCo's model as a file, the seconds per step, and the pose; empty for other envs.")
      .def("save", &save)
      .def("load", &load, nb::arg("state"), "Continue from saved states; if one of them is rejected, nothing changes.")
      .def("check", &check, nb::arg("state"), "Raise what `load` would raise.");
}
