// The learner from Python: samples, order and settings of an update, as dicts of arrays and numbers.
#include "surefoot/learner.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unordered_map.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "arrays.hpp"
#include "named_tensors.hpp"
#include "policy_plan.hpp"
#include "signal_check.hpp"
#include "surefoot/orthonormal.hpp"
#include "surefoot/returns.hpp"
#include "threads.hpp"

namespace surefoot {
namespace {

template <class Value>
Value setting(const nb::dict& dict, const char* name) {
  Value value{};
  if (!dict.contains(name)) throw nb::value_error((std::string(name) + " is missing").c_str());
  if (!nb::try_cast(dict[name], value)) throw nb::type_error((std::string(name) + " has the wrong type").c_str());
  return value;
}

bool has(const nb::dict& dict, const char* name) { return dict.contains(name) && !dict[name].is_none(); }

/// Reads whole numbers from 0 to below `limit`, in any count.
std::vector<std::size_t> indices(const nb::dict& dict, const char* name, std::size_t limit) {
  nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> array;
  if (!dict.contains(name) || !nb::try_cast(dict[name], array, false)) {
    throw nb::type_error((std::string(name) + " must be a C-contiguous int64 array of one dimension").c_str());
  }
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (array.data()[i] < 0 || static_cast<std::size_t>(array.data()[i]) >= limit) {
      throw nb::value_error((std::string(name) + " has a number out of range").c_str());
    }
  }
  return {array.data(), array.data() + array.size()};
}

std::vector<Run> runs_of(const nb::dict& dict, std::size_t samples) {
  const std::vector<std::size_t> first = indices(dict, "first", samples), length = indices(dict, "length", samples + 1);
  if (first.size() != length.size()) throw nb::value_error("first and length must have the same size");
  std::vector<Run> runs;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (length[i] == 0 || first[i] + length[i] > samples) throw nb::value_error("a run leaves the samples");
    runs.push_back({first[i], length[i]});
  }
  return runs;
}

SequenceSamples sequences_of(const Policy& policy, const nb::dict& dict, std::size_t samples) {
  SequenceSamples found;
  found.runs = runs_of(dict, samples);
  found.num_places = setting<std::size_t>(dict, "num_places");
  found.places = indices(dict, "places", found.num_places);
  if (found.places.size() != found.runs.size()) throw nb::value_error("places must have one number per run");
  const auto stored = setting<std::vector<nb::object>>(dict, "states");
  const std::vector<std::size_t>& sizes = policy.state_sizes();
  if (stored.size() != sizes.size()) throw nb::value_error("states must have one array per tensor of the state");
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    found.stored.push_back(checked<const float>(stored[i], "states", {found.num_places, sizes[i]}));
  }
  found.episode_start = entry<const bool>(dict, "episode_start", {samples});
  for (const nb::dict& carry : setting<std::vector<nb::dict>>(dict, "carries")) {
    SequenceSamples::Carry& added = found.carries.emplace_back();
    added.runs = runs_of(carry, samples);
    added.from = indices(carry, "from", found.num_places);
    added.to = indices(carry, "to", found.num_places);
    const auto is_shorter = [](const Run& a, const Run& b) { return a.length > b.length; };
    if (!std::is_sorted(added.runs.begin(), added.runs.end(), is_shorter)) {
      throw nb::value_error("the runs of a carry must begin with the longest");
    }
    if (added.runs.empty() || added.from.size() != added.runs.size() || added.to.size() != added.runs.size()) {
      throw nb::value_error("a carry must have a run, from and to for each row");
    }
  }
  return found;
}

/// Reads extra fields of samples by name, of any of three types.
std::vector<ExtraSamples> extras_of(const nb::dict& dict, std::size_t samples) {
  std::vector<ExtraSamples> extras;
  for (const auto& [key, value] : dict) {
    nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> array;
    const auto name = nb::cast<std::string>(key);
    const bool is_array = nb::try_cast(value, array, false) && array.ndim() >= 1 && array.shape(0) == samples;
    const bool is_float = is_array && array.dtype() == nb::dtype<float>();
    const bool is_integer = is_array && array.dtype() == nb::dtype<std::int64_t>();
    if (!is_float && !is_integer && !(is_array && array.dtype() == nb::dtype<bool>())) {
      throw nb::type_error(("the extra " + name + " must be a float32, int64 or bool array, one row a sample").c_str());
    }
    const ExtraType type = is_float ? ExtraType::kFloat : is_integer ? ExtraType::kInteger : ExtraType::kFlag;
    extras.push_back({name, type, array.size() / samples, static_cast<const std::byte*>(array.data())});
  }
  return extras;
}

LearnerSamples samples_of(const Policy& policy, const nb::dict& dict) {
  LearnerSamples samples{};
  const auto obs = setting<std::vector<nb::object>>(dict, "obs");
  const std::vector<ObsPlan>& plan = policy.plan().obs;
  nb::ndarray<const float> log_prob;
  if (!dict.contains("log_prob") || !nb::try_cast(dict["log_prob"], log_prob, false) || log_prob.ndim() != 1) {
    throw nb::type_error("log_prob must be a float32 array of one dimension");
  }
  samples.count = log_prob.shape(0);
  if (samples.count == 0) throw nb::value_error("there are no samples");
  if (obs.size() != plan.size()) throw nb::value_error("obs must have one array per observation");
  for (std::size_t i = 0; i < obs.size(); ++i) {
    const std::string name = "obs " + plan[i].key;
    const Shape shape{samples.count, plan[i].size};
    const bool is_image = plan[i].normalizer.empty() && nb::isinstance<nb::ndarray<const std::uint8_t>>(obs[i]);
    samples.images.push_back(is_image ? checked<const std::uint8_t>(obs[i], name, shape) : nullptr);
    samples.obs.push_back(is_image ? nullptr : checked<const float>(obs[i], name, shape));
  }
  const Shape column{samples.count}, actions{samples.count, policy.action_size()};
  if (policy.is_discrete()) {
    samples.choice = entry<const std::int64_t>(dict, "action", actions);
  } else {
    samples.action = entry<const float>(dict, "action", actions);
  }
  if (has(dict, "mask")) samples.mask = entry<const bool>(dict, "mask", {samples.count, policy.mask_size()});
  samples.log_prob = entry<const float>(dict, "log_prob", column);
  // For a critic that predicts only its value, the old prediction is the value.
  const bool has_own = has(dict, "prediction");
  samples.prediction_size = policy.prediction_size();
  if (!has_own && samples.prediction_size > 1) throw nb::value_error("prediction is missing");
  samples.prediction = entry<const float>(dict, has_own ? "prediction" : "value",
                                          has_own ? Shape{samples.count, samples.prediction_size} : column);
  samples.advantage = entry<const float>(dict, "advantage", column);
  samples.returns = entry<const float>(dict, "returns", column);
  if (has(dict, "weight")) samples.weight = entry<const float>(dict, "weight", column);
  if (has(dict, "extras")) samples.extras = extras_of(setting<nb::dict>(dict, "extras"), samples.count);
  return samples;
}

FlatMemory memory_of(const nb::dict& dict, const std::vector<NamedTensor>& tensors) {
  FlatMemory memory{};
  nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu> values;
  if (!dict.contains("value") || !nb::try_cast(dict["value"], values, false)) {
    throw nb::type_error("value must be a writable float32 array of one dimension");
  }
  memory.size = values.shape(0);
  memory.value = values.data();
  memory.gradient = entry<float>(dict, "gradient", {memory.size});
  memory.mean = entry<float>(dict, "mean", {memory.size});
  memory.square = entry<float>(dict, "square", {memory.size});
  const auto offsets = setting<std::map<std::string, std::size_t>>(dict, "offsets");
  std::size_t found = 0;
  for (const NamedTensor& tensor : tensors) {
    const auto offset = offsets.find(tensor.name);
    if (offset == offsets.end()) continue;
    ++found;
    if (tensor.data != memory.value + offset->second) {
      throw nb::value_error((tensor.name + " does not lie in the optimizer's memory").c_str());
    }
    memory.offsets.insert(*offset);
  }
  if (found != offsets.size()) throw nb::value_error("offsets names a tensor that is not given");
  memory.missed = setting<std::unordered_map<std::string, std::size_t>>(dict, "missed");
  memory.clips = setting<std::vector<std::size_t>>(dict, "clips");
  for (const std::size_t clip : memory.clips) {
    if (clip >= memory.clips.size()) throw nb::value_error("clips has a number out of range");
  }
  std::size_t end = 0;
  for (const auto& [from, to, part] :
       setting<std::vector<std::tuple<std::size_t, std::size_t, std::size_t>>>(dict, "parts")) {
    if (from < end || to < from || to > memory.size) throw nb::value_error("parts must lie in the memory, in order");
    if (part >= memory.num_parts()) throw nb::value_error("parts has a number out of range");
    memory.parts.push_back({from, to, part});
    end = to;
  }
  for (const auto& [name, offset] : memory.offsets) {
    const auto holds = [at = offset](const PartSlice& one) { return one.begin <= at && at < one.end; };
    if (std::none_of(memory.parts.begin(), memory.parts.end(), holds)) {
      throw nb::value_error((name + " lies in no part").c_str());
    }
  }
  return memory;
}

/// Reads transforms by their plans, each with its own state.
std::vector<ActiveTransform> transforms_of(const std::vector<nb::dict>& plans, const std::vector<nb::dict>& memories,
                                           std::size_t size, const Kernels& kernels) {
  if (plans.size() != memories.size()) throw nb::value_error("transforms must have as many memories as plans");
  std::vector<ActiveTransform> made;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::string path = "transforms[" + std::to_string(i) + "]";
    ActiveTransform active{
        make_part<Transform>(part_plan(plans[i], path), kernels), entry<std::int64_t>(memories[i], "steps", {1}), {}};
    if (*active.steps < 0) throw nb::value_error((path + " has a negative number of steps").c_str());
    for (const std::string& name : active.transform->tensors()) {
      active.tensors.push_back(entry<float>(memories[i], name.c_str(), {size}));
    }
    made.push_back(std::move(active));
  }
  return made;
}

SharedMinibatches shared_of(const nb::dict& dict, std::size_t epochs, std::size_t units) {
  SharedMinibatches shared;
  const std::vector<std::size_t> own = indices(dict, "units", units);
  shared.units.assign(own.begin(), own.end());
  std::size_t first = 0;
  for (const auto& epoch :
       setting<std::vector<std::vector<std::tuple<std::size_t, std::size_t, float, float>>>>(dict, "epochs")) {
    std::vector<SharedMinibatches::One>& added = shared.epochs.emplace_back();
    for (const auto& [number, count, mean, scale] : epoch) {
      if (count == 0 || number > count) throw nb::value_error("a shared minibatch has fewer samples than own units");
      added.push_back({first, number, count, mean, scale});
      first += number;
    }
  }
  if (first != own.size()) throw nb::value_error("the shared minibatches must have all units");
  if (shared.epochs.size() != epochs) throw nb::value_error("there must be shared minibatches for every epoch");
  return shared;
}

OptimizerSettings optimizer_of(const nb::dict& dict) {
  return {.lr = setting<double>(dict, "lr"),
          .beta1 = setting<double>(dict, "beta1"),
          .beta2 = setting<double>(dict, "beta2"),
          .epsilon = setting<double>(dict, "epsilon"),
          .weight_decay = setting<double>(dict, "weight_decay"),
          .is_decoupled = setting<bool>(dict, "is_decoupled"),
          .max_norm = setting<double>(dict, "max_norm")};
}

nb::dict learn(Learner& learner, const nb::dict& samples, const nb::dict& settings, const nb::dict& tensors,
               const nb::dict& memory, Threads& threads, nb::object on_gradient) {
  Update update{};
  update.samples = samples_of(learner.policy(), samples);
  SequenceSamples sequences;
  update.units = update.samples.count;
  if (has(samples, "sequences")) {
    sequences = sequences_of(learner.policy(), setting<nb::dict>(samples, "sequences"), update.samples.count);
    update.samples.sequences = &sequences;
    update.units = sequences.runs.size();
  } else if (!learner.policy().state_sizes().empty()) {
    throw nb::value_error("sequences are missing, which a policy with memory learns from");
  }
  update.seed = setting<std::uint64_t>(settings, "seed");
  update.index = setting<std::uint64_t>(settings, "update");
  update.epochs = setting<std::size_t>(settings, "epochs");
  update.num_valid = setting<std::size_t>(settings, "num_valid");
  update.batch_size = setting<std::size_t>(settings, "batch_size");
  update.micro_batch_size = setting<std::size_t>(settings, "micro_batch_size");
  if (update.batch_size == 0) throw nb::value_error("batch_size must be positive");
  update.normalizes_advantages = setting<bool>(settings, "normalizes_advantages");
  update.target_kl = setting<double>(settings, "target_kl");
  update.optimizer = optimizer_of(settings);
  update.weights = setting<std::vector<double>>(settings, "weights");
  if (update.weights.size() != learner.num_terms()) throw nb::value_error("weights must have one number per term");
  update.knobs = setting<Knobs>(settings, "knobs");
  update.steps_before = setting<std::size_t>(settings, "steps_before");
  if (!on_gradient.is_none()) {
    update.on_gradient = [&](std::span<double> sums) {
      const nb::gil_scoped_acquire acquired;
      const nb::ndarray<nb::numpy, double> view(sums.data(), {sums.size()}, nb::handle());
      on_gradient(nb::cast(view, nb::rv_policy::reference));  // a view, because it may be changed
    };
  }
  SharedMinibatches shared;
  if (has(settings, "shared")) {
    shared = shared_of(setting<nb::dict>(settings, "shared"), update.epochs, update.units);
    update.shared = &shared;
  }
  const std::vector<NamedTensor> named = named_tensors(tensors);
  const FlatMemory flat = memory_of(memory, named);
  for (const auto& [name, steps] : flat.missed) {
    if (steps > update.steps_before) throw nb::value_error((name + " has missed more steps than were taken").c_str());
  }
  if (has(settings, "transforms")) {
    if (update.on_gradient) throw nb::value_error("there may be transforms or on_gradient, not both");
    update.transforms =
        transforms_of(setting<std::vector<nb::dict>>(settings, "transforms"),
                      setting<std::vector<nb::dict>>(memory, "transforms"), flat.size, learner.policy().kernels());
  }
  std::vector<std::string> transform_measures;
  for (const ActiveTransform& active : update.transforms) {
    for (const auto& measure : active.transform->measures()) {
      transform_measures.push_back(active.transform->name() + "/" + measure.first);
    }
  }
  update.may_go_on = SignalCheck();
  UpdateRecord record;
  {
    const nb::gil_scoped_release released;
    record = learner.learn(update, named, flat, threads.pool());
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  nb::dict done;
  done["steps"] = record.steps;
  const std::size_t count = record.shares.size();
  done["minibatches"] = record.minibatches;
  done["shares"] = owned(std::move(record.shares), {count});
  done["transformed"] = owned(std::move(record.transformed), {count, transform_measures.size()});
  done["transform_measures"] = transform_measures;
  done["measures"] = owned(std::move(record.measures), {count, learner.measures().size() + flat.num_parts()});
  return done;
}

/// The number of steps and rows of an array [T, N].
Shape table(const nb::dict& arrays, const char* name) {
  nb::ndarray<const float, nb::ndim<2>> array;
  if (!arrays.contains(name) || !nb::try_cast(arrays[name], array, false)) {
    throw nb::type_error((std::string(name) + " must be a float32 array of shape [steps, rows]").c_str());
  }
  return {array.shape(0), array.shape(1)};
}

void gae_of(const nb::dict& arrays, double gamma, double lambda) {
  const Shape shape = table(arrays, "reward");
  const GaeRollout rollout{.steps = shape[0],
                           .rows = shape[1],
                           .reward = entry<const float>(arrays, "reward", shape),
                           .value = entry<const float>(arrays, "value", shape),
                           .last_value = entry<const float>(arrays, "last_value", {shape[1]}),
                           .final_value = entry<const float>(arrays, "final_value", shape),
                           .terminated = entry<const bool>(arrays, "terminated", shape),
                           .truncated = entry<const bool>(arrays, "truncated", shape),
                           .valid = entry<const bool>(arrays, "valid", shape)};
  float* const advantage = entry<float>(arrays, "advantage", shape);
  float* const returns = entry<float>(arrays, "returns", shape);
  const nb::gil_scoped_release released;
  gae(rollout, gamma, lambda, advantage, returns);
}

void discounted_sums_of(const nb::dict& arrays, float gamma) {
  const Shape shape = table(arrays, "reward");
  const float* const reward = entry<const float>(arrays, "reward", shape);
  const bool* const ended = entry<const bool>(arrays, "ended", shape);
  const float* const carried = entry<const float>(arrays, "carried", {shape[1]});
  float* const sums = entry<float>(arrays, "sums", shape);
  const nb::gil_scoped_release released;
  discounted_sums(shape[0], shape[1], reward, ended, gamma, carried, sums);
}

void orthonormalize_array(nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> vectors) {
  if (vectors.shape(0) > vectors.shape(1)) throw nb::value_error("vectors must not be more than their size");
  const nb::gil_scoped_release released;
  orthonormalize(vectors.shape(0), vectors.shape(1), vectors.data());
}

}  // namespace
}  // namespace surefoot

void bind_learner(nanobind::module_& module) {
  namespace nb = nanobind;
  using namespace nb::literals;
  using namespace surefoot;
  nb::class_<Learner>(module, "Learner", "The update of a policy that the core learns.")
      .def(
          "__init__",
          [](Learner* learner, const nb::dict& plan, const std::vector<nb::dict>& terms, const nb::dict& tensors,
             const std::string& instructions) {
            std::vector<PartPlan> plans;
            for (const nb::dict& term : terms)
              plans.push_back(part_plan(term, "terms[" + std::to_string(plans.size()) + "]"));
            new (learner) Learner(policy_plan(plan), plans, named_tensors(tensors), kernels_of(instructions));
          },
          "plan"_a, "terms"_a, "tensors"_a, "instructions"_a = "",
          "Build from the plans of a policy and its terms; `instructions` selects an instruction set instead of the "
          "best.")
      .def_prop_ro("measures", &Learner::measures, "Names of the columns of the measures of `learn`.")
      .def("learn", &learn, "samples"_a, "settings"_a, "tensors"_a, "memory"_a, "threads"_a,
           "on_gradient"_a = nb::none(),
           "Run all epochs of an update; weights, gradient, moments and what transforms remember change in place. "
           "`on_gradient` is called with the sums of the measures before every step.");
  module.def("orthonormalize", &orthonormalize_array, "vectors"_a, "Make the rows orthonormal, in place.");
  module.def("gae", &gae_of, "arrays"_a, "gamma"_a, "gae_lambda"_a,
             "Generalized advantage estimation; writes `advantage` and `returns`.");
  module.def("discounted_sums", &discounted_sums_of, "arrays"_a, "gamma"_a,
             "Discounted sums of past rewards; writes `sums`.");
}
