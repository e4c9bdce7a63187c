// The learner from Python: samples, order and settings of an update, as dicts of arrays and numbers.
#include "surefoot/learner.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unordered_map.h>

#include <algorithm>

#include "entries.hpp"
#include "named_tensors.hpp"
#include "policy_plan.hpp"
#include "signal_check.hpp"
#include "surefoot/orthonormal.hpp"
#include "surefoot/returns.hpp"
#include "threads.hpp"

namespace surefoot {
namespace {

/// Reads whole numbers from 0 to below `limit`, in any count.
std::vector<std::size_t> indices(const Entries& entries, const char* name, std::size_t limit) {
  const auto numbers = entries.numbers<const std::int64_t>(name);
  for (const std::int64_t number : numbers) {
    if (number < 0 || static_cast<std::size_t>(number) >= limit) {
      throw nb::value_error((std::string(name) + " has a number out of range").c_str());
    }
  }
  return {numbers.begin(), numbers.end()};
}

std::vector<Run> runs_of(const Entries& entries, std::size_t samples) {
  const std::vector<std::size_t> first = indices(entries, "first", samples),
                                 length = indices(entries, "length", samples + 1);
  if (first.size() != length.size()) throw nb::value_error("first and length must have the same size");
  std::vector<Run> runs;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (length[i] == 0 || first[i] + length[i] > samples) throw nb::value_error("a run leaves the samples");
    runs.push_back({first[i], length[i]});
  }
  return runs;
}

SequenceSamples sequences_of(const Policy& policy, const Entries& entries, std::size_t samples) {
  SequenceSamples found;
  found.runs = runs_of(entries, samples);
  found.num_places = entries.read<std::size_t>("num_places");
  found.places = indices(entries, "places", found.num_places);
  if (found.places.size() != found.runs.size()) throw nb::value_error("places must have one number per run");
  found.stored = entries.parts<const float>("states", {found.num_places}, policy.state_sizes());
  found.episode_start = entries.array<const bool>("episode_start", {samples});
  for (const Entries& carry : entries.list("carries")) {
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

LearnerSamples samples_of(const Policy& policy, const Entries& entries) {
  LearnerSamples samples{};
  const auto obs = entries.read<std::vector<nb::object>>("obs");
  const std::vector<ObsPlan>& plan = policy.plan().obs;
  samples.count = entries.numbers<const float>("log_prob").size();
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
    samples.choice = entries.array<const std::int64_t>("action", actions);
  } else {
    samples.action = entries.array<const float>("action", actions);
  }
  if (entries.has("mask")) samples.mask = entries.array<const bool>("mask", {samples.count, policy.mask_size()});
  samples.log_prob = entries.array<const float>("log_prob", column);
  // For a critic that predicts only its value, the old prediction is the value.
  const bool has_own = entries.has("prediction");
  samples.prediction_size = policy.prediction_size();
  if (!has_own && samples.prediction_size > 1) throw nb::value_error("prediction is missing");
  samples.prediction = entries.array<const float>(has_own ? "prediction" : "value",
                                                  has_own ? Shape{samples.count, samples.prediction_size} : column);
  samples.advantage = entries.array<const float>("advantage", column);
  samples.returns = entries.array<const float>("returns", column);
  if (entries.has("weight")) samples.weight = entries.array<const float>("weight", column);
  if (entries.has("extras")) samples.extras = extras_of(entries.read<nb::dict>("extras"), samples.count);
  return samples;
}

FlatMemory memory_of(const Entries& entries, const std::vector<NamedTensor>& tensors) {
  FlatMemory memory{};
  const auto values = entries.numbers<float>("value");
  memory.size = values.size();
  memory.value = values.data();
  memory.gradient = entries.array<float>("gradient", {memory.size});
  memory.mean = entries.array<float>("mean", {memory.size});
  memory.square = entries.array<float>("square", {memory.size});
  const auto offsets = entries.read<std::map<std::string, std::size_t>>("offsets");
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
  memory.missed = entries.read<std::unordered_map<std::string, std::size_t>>("missed");
  memory.clips = entries.read<std::vector<std::size_t>>("clips");
  for (const std::size_t clip : memory.clips) {
    if (clip >= memory.clips.size()) throw nb::value_error("clips has a number out of range");
  }
  std::size_t end = 0;
  for (const auto& [from, to, part] :
       entries.read<std::vector<std::tuple<std::size_t, std::size_t, std::size_t>>>("parts")) {
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
std::vector<ActiveTransform> transforms_of(const std::vector<Entries>& plans, const std::vector<Entries>& memories,
                                           std::size_t size, const Kernels& kernels) {
  if (plans.size() != memories.size()) throw nb::value_error("transforms must have as many memories as plans");
  std::vector<ActiveTransform> made;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const std::string path = "transforms[" + std::to_string(i) + "]";
    ActiveTransform active{make_part<Transform>(part_plan(plans[i].plain(), path), kernels),
                           memories[i].array<std::int64_t>("steps", {1}),
                           {}};
    if (*active.steps < 0) throw nb::value_error((path + " has a negative number of steps").c_str());
    for (const std::string& name : active.transform->tensors()) {
      active.tensors.push_back(memories[i].array<float>(name.c_str(), {size}));
    }
    made.push_back(std::move(active));
  }
  return made;
}

SharedMinibatches shared_of(const Entries& entries, std::size_t epochs, std::size_t units) {
  SharedMinibatches shared;
  const std::vector<std::size_t> own = indices(entries, "units", units);
  shared.units.assign(own.begin(), own.end());
  std::size_t first = 0;
  for (const auto& epoch :
       entries.read<std::vector<std::vector<std::tuple<std::size_t, std::size_t, float, float>>>>("epochs")) {
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

OptimizerSettings optimizer_of(const Entries& entries) {
  return {.lr = entries.read<double>("lr"),
          .beta1 = entries.read<double>("beta1"),
          .beta2 = entries.read<double>("beta2"),
          .epsilon = entries.read<double>("epsilon"),
          .weight_decay = entries.read<double>("weight_decay"),
          .is_decoupled = entries.read<bool>("is_decoupled"),
          .max_norm = entries.read<double>("max_norm")};
}

nb::dict learn(Learner& learner, const nb::dict& of_samples, const nb::dict& of_settings, const nb::dict& tensors,
               const nb::dict& of_memory, Threads& threads, nb::object on_gradient) {
  const Entries samples(of_samples), settings(of_settings), memory(of_memory);
  Update update{};
  update.samples = samples_of(learner.policy(), samples);
  SequenceSamples sequences;
  update.units = update.samples.count;
  if (samples.has("sequences")) {
    sequences = sequences_of(learner.policy(), samples.inner("sequences"), update.samples.count);
    update.samples.sequences = &sequences;
    update.units = sequences.runs.size();
  } else if (!learner.policy().state_sizes().empty()) {
    throw nb::value_error("sequences are missing, which a policy with memory learns from");
  }
  update.seed = settings.read<std::uint64_t>("seed");
  update.index = settings.read<std::uint64_t>("update");
  update.epochs = settings.read<std::size_t>("epochs");
  update.num_valid = settings.read<std::size_t>("num_valid");
  update.batch_size = settings.read<std::size_t>("batch_size");
  update.micro_batch_size = settings.read<std::size_t>("micro_batch_size");
  if (update.batch_size == 0) throw nb::value_error("batch_size must be positive");
  update.normalizes_advantages = settings.read<bool>("normalizes_advantages");
  update.target_kl = settings.read<double>("target_kl");
  update.optimizer = optimizer_of(settings);
  update.weights = settings.read<std::vector<double>>("weights");
  if (update.weights.size() != learner.num_terms()) throw nb::value_error("weights must have one number per term");
  update.knobs = settings.read<Knobs>("knobs");
  update.steps_before = settings.read<std::size_t>("steps_before");
  if (!on_gradient.is_none()) {
    update.on_gradient = [&](std::span<double> sums) {
      const nb::gil_scoped_acquire acquired;
      const nb::ndarray<nb::numpy, double> view(sums.data(), {sums.size()}, nb::handle());
      on_gradient(nb::cast(view, nb::rv_policy::reference));  // a view, because it may be changed
    };
  }
  SharedMinibatches shared;
  if (settings.has("shared")) {
    shared = shared_of(settings.inner("shared"), update.epochs, update.units);
    update.shared = &shared;
  }
  const std::vector<NamedTensor> named = named_tensors(tensors);
  const FlatMemory flat = memory_of(memory, named);
  for (const auto& [name, steps] : flat.missed) {
    if (steps > update.steps_before) throw nb::value_error((name + " has missed more steps than were taken").c_str());
  }
  if (settings.has("transforms")) {
    if (update.on_gradient) throw nb::value_error("there may be transforms or on_gradient, not both");
    update.transforms =
        transforms_of(settings.list("transforms"), memory.list("transforms"), flat.size, learner.policy().kernels());
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
Shape table(const Entries& arrays, const char* name) {
  nb::ndarray<const float, nb::ndim<2>> array;
  if (!arrays.has(name) || !nb::try_cast(arrays.alone(name), array, false)) {
    throw nb::type_error((std::string(name) + " must be a float32 array of shape [steps, rows]").c_str());
  }
  return {array.shape(0), array.shape(1)};
}

void gae_of(const nb::dict& given, double gamma, double lambda) {
  const Entries arrays(given);
  const Shape shape = table(arrays, "reward");
  const GaeRollout rollout{.steps = shape[0],
                           .rows = shape[1],
                           .reward = arrays.array<const float>("reward", shape),
                           .value = arrays.array<const float>("value", shape),
                           .last_value = arrays.array<const float>("last_value", {shape[1]}),
                           .final_value = arrays.array<const float>("final_value", shape),
                           .terminated = arrays.array<const bool>("terminated", shape),
                           .truncated = arrays.array<const bool>("truncated", shape),
                           .valid = arrays.array<const bool>("valid", shape)};
  float* const advantage = arrays.array<float>("advantage", shape);
  float* const returns = arrays.array<float>("returns", shape);
  const nb::gil_scoped_release released;
  gae(rollout, gamma, lambda, advantage, returns);
}

void discounted_sums_of(const nb::dict& given, float gamma) {
  const Entries arrays(given);
  const Shape shape = table(arrays, "reward");
  const float* const reward = arrays.array<const float>("reward", shape);
  const bool* const ended = arrays.array<const bool>("ended", shape);
  const float* const carried = arrays.array<const float>("carried", {shape[1]});
  float* const sums = arrays.array<float>("sums", shape);
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
