// The learner's passes, with sizes that fit no vector and numbers that are not finite.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "../tests/engine_arrays.hpp"
#include "../tests/flat_tensors.hpp"
#include "chance.hpp"
#include "policies.hpp"
#include "surefoot/parts/head.hpp"
#include "surefoot/recurrence.hpp"

namespace surefoot::fuzz {
namespace {

using Floats = std::vector<float>;

Floats numbers(std::size_t count, Chance& chance) {
  Floats made(count);
  for (float& number : made) {
    number = static_cast<float>(chance.once_in(200) ? chance.odd_number() : chance.uniform(-1.0, 1.0));
  }
  return made;
}

/// The tensors of a policy in three parts, of which two are clipped together.
struct Flat : FlatTensors {
  explicit Flat(const RandomPolicy& policy) : FlatTensors(policy.named()), own(2, Floats(values.size())) {
    memory.parts.clear();
    for (const NamedTensor& tensor : tensors) {
      const std::size_t first = memory.offsets[tensor.name];
      memory.parts.push_back({first, first + size_of(tensor.shape), memory.parts.size() % 3});
    }
    memory.clips = {0, 1, 0};
    // Statistics are given, not learned.
    std::erase_if(memory.offsets, [](const auto& entry) { return entry.first.starts_with("normalizer"); });
  }

  /// A transform of gradients, which remembers in `own` and `steps`.
  std::vector<ActiveTransform> scaled_by(const PartPlan& plan, const Kernels& kernels) {
    std::vector<ActiveTransform> made;
    made.push_back({make_part<Transform>(plan, kernels), &steps, {own[0].data(), own[1].data()}});
    return made;
  }

  std::vector<Floats> own;
  std::int64_t steps = 0;
};

PartPlan scaling_plan(Chance& chance) {
  return {"variance_scaling",
          {{"name", "vgs"},
           {"beta", chance.uniform(0.0, 0.99)},
           {"warmup", static_cast<double>(chance.between(0, 5))},
           {"floor", chance.uniform(0.0, 1.0)},
           {"epsilon", 1e-8}}};
}

ActionSpace any_actions(Chance& chance) {
  const std::size_t size = chance.between(1, 5);
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < size; ++i) sizes.push_back(static_cast<std::int64_t>(chance.between(1, 20)));
  switch (chance.between(0, 3)) {
    case 0:
      return ActionSpace::box({size}, {{-1.0}, {1.0}});
    case 1:
      return ActionSpace::multi_binary(size);
    case 2:
      return ActionSpace::discrete(sizes[0]);
    default:
      return ActionSpace::multi_discrete(sizes);
  }
}

/// A whole update of any policy: the same bits for one thread and for several.
void update(Chance& chance, ThreadPool& pool, const Kernels& kernels) {
  std::vector<std::size_t> obs_sizes(chance.between(1, 2));
  for (std::size_t& size : obs_sizes) size = chance.between(1, 40);
  const ActionSpace space = any_actions(chance);
  const RandomPolicy policy(obs_sizes, space, chance);
  const std::size_t count = chance.between(1, 200);
  std::vector<Floats> obs;
  Update update{};
  update.samples.count = count;
  for (const std::size_t size : obs_sizes)
    update.samples.obs.push_back(obs.emplace_back(numbers(count * size, chance)).data());
  const std::size_t actions = space.size();
  const Floats action = numbers(count * actions, chance), log_prob = numbers(count, chance);
  const Floats advantage = numbers(count, chance), returns = numbers(count, chance);
  std::vector<std::int64_t> choice(count * actions);
  const bool is_box = !space.has_choices();
  for (std::size_t i = 0; i < choice.size() && !is_box; ++i) {
    const auto [first, last] = space.choices(i % actions);
    choice[i] = static_cast<std::int64_t>(chance.between(0, static_cast<std::size_t>(last - first)));
  }
  update.samples.action = is_box ? action.data() : nullptr;
  update.samples.choice = is_box ? nullptr : choice.data();
  update.samples.log_prob = log_prob.data();
  update.samples.advantage = advantage.data();
  update.samples.returns = returns.data();
  // What a hook wrote, and who acted: a row of another policy has no weight in most terms.
  const Floats label = numbers(count * actions, chance);
  const void* const labels = is_box ? static_cast<const void*>(label.data()) : choice.data();
  update.samples.extras = {
      {"label", is_box ? ExtraType::kFloat : ExtraType::kInteger, actions, static_cast<const std::byte*>(labels)}};
  Floats weight(count, 1.5f);
  for (std::size_t i = 1; i < count; ++i) weight[i] = chance.once_in(3) ? 0.0f : 1.5f;
  update.samples.weight = chance.once_in(2) ? weight.data() : nullptr;
  update.seed = chance.word();
  update.epochs = chance.between(1, 2);
  update.units = update.num_valid = count;
  update.batch_size = chance.between(1, count + 10);
  update.micro_batch_size = chance.once_in(2) ? 0 : chance.between(1, count);
  update.normalizes_advantages = chance.once_in(2);
  update.target_kl = chance.once_in(2) ? 0.01 : std::numeric_limits<double>::infinity();
  update.optimizer = {1e-3, 0.9, 0.999, 1e-8, chance.once_in(2) ? 0.1 : 0.0, chance.once_in(2), 0.5};
  update.weights = {1.0, 0.5, chance.once_in(2) ? 0.01 : 0.0, chance.once_in(2) ? 0.1 : 0.0,
                    chance.once_in(2) ? 0.7 : 0.0};
  update.knobs = {{"clip", 0.2}, {"vgs.strength", 0.1}};
  const std::vector<PartPlan> terms{{"surrogate"},
                                    {"value", {{"clip", 0.2}}},
                                    {"entropy"},
                                    {"kl_penalty"},
                                    {"clone", {{"label", std::string("label")}}}};
  Learner learner(policy.plan, terms, policy.named(), kernels);
  update.samples.prediction_size = learner.policy().prediction_size();
  const Floats prediction = numbers(count * update.samples.prediction_size, chance);
  update.samples.prediction = prediction.data();
  SequenceSamples sequences;
  std::vector<Floats> states;
  Flags starts(count);
  if (!learner.policy().state_sizes().empty()) {
    sequences.num_places = chance.between(1, 4);
    for (std::size_t first = 0; first < count;) {
      const std::size_t length = std::min(chance.between(1, 30), count - first);
      sequences.runs.push_back({first, length});
      sequences.places.push_back(chance.between(0, sequences.num_places - 1));
      starts[first] = chance.once_in(2);
      first += length;
    }
    for (const std::size_t size : learner.policy().state_sizes()) {
      sequences.stored.push_back(states.emplace_back(numbers(sequences.num_places * size, chance)).data());
    }
    sequences.episode_start = starts.data();
    sequences.carries.push_back({{sequences.runs[0]}, {0}, {sequences.num_places - 1}});
    update.samples.sequences = &sequences;
    update.units = sequences.runs.size();
  }
  Flat here(policy), there(policy);
  ThreadPool alone(1);
  const PartPlan scaling = scaling_plan(chance);
  const bool is_scaled = chance.once_in(2);
  if (is_scaled) update.transforms = here.scaled_by(scaling, kernels);
  const UpdateRecord one = learner.learn(update, here.tensors, here.memory, pool);
  if (is_scaled) update.transforms = there.scaled_by(scaling, kernels);
  const UpdateRecord other = learner.learn(update, there.tensors, there.memory, alone);
  require(one.steps == other.steps, "the number of steps depends on the number of threads");
  require(same_bytes(here.values, there.values) && same_bytes(here.mean, there.mean),
          "weights depend on the number of threads");
  require(same_bytes(here.own[0], there.own[0]) && same_bytes(here.own[1], there.own[1]) && here.steps == there.steps,
          "what a transform remembers depends on the number of threads");
  require(!is_scaled || one.transformed.size() == 2 * one.shares.size(), "a step has no measures of its transform");
  for (const Floats& moment : here.own) {
    require(std::all_of(moment.begin(), moment.end(), [](float number) { return std::isfinite(number); }),
            "a gradient has poisoned what a transform remembers");
  }
}

void recurrence(Chance& chance, ThreadPool& pool, const Kernels& kernels) {
  std::vector<std::int64_t> running{static_cast<std::int64_t>(chance.between(1, 30))};
  for (std::size_t step = chance.between(0, 12); step > 0; --step) {
    running.push_back(static_cast<std::int64_t>(chance.between(1, static_cast<std::size_t>(running.back()))));
  }
  const PackedSteps steps(running);
  const bool is_lstm = chance.once_in(2);
  const std::size_t hidden = chance.between(1, 40), gates = is_lstm ? 4 : 3;
  const std::size_t samples = steps.samples() * hidden, sequences = steps.sequences() * hidden;
  const Floats weight = numbers(gates * hidden * hidden, chance), bias = numbers(gates * hidden, chance);
  const Floats gates_x = numbers(gates * samples, chance), h0 = numbers(sequences, chance);
  const Floats c0 = numbers(sequences, chance), grad_h = numbers(samples, chance);
  const Floats grad_h_last = numbers(sequences, chance), grad_c_last = numbers(sequences, chance);
  Floats kept(4 * samples), h(samples), c(samples), h_last(sequences), h_before(samples);
  Floats grad_x(gates * samples), grad_gates(gates * samples), grad_h0(sequences), grad_c0(sequences);
  const CellPass pass{.gates_x = {gates_x.data(), gates * hidden},
                      .before = {h0.data(), c0.data()},
                      .states = {h.data(), c.data()},
                      .kept = kept.data(),
                      .grad_output = {grad_h.data(), hidden},
                      .grad_last = {grad_h_last.data(), grad_c_last.data()},
                      .grad_gates_x = grad_x.data(),
                      .grad_gates_past = is_lstm ? grad_x.data() : grad_gates.data(),
                      .grad_stride = gates * hidden,
                      .past = h_before.data(),
                      .grad_before = {grad_h0.data(), grad_c0.data()}};
  const CellKind kind = is_lstm ? lstm_cells(kernels) : gru_cells(kernels);
  PooledRecurrence(kind, steps, hidden, weight.data(), bias.data(), pool, kernels).run(pass);
  PooledRecurrence(kind, steps, hidden, weight.data(), nullptr, pool, kernels).run(pass);
  copy_last(steps, hidden, h.data(), h_last.data());
}

PartPlan head_plan(Chance& chance) {
  constexpr const char* kKinds[] = {"gaussian", "tanh_gaussian", "beta", "multi_discrete", "bernoulli"};
  const std::string kind = chance.one_of(kKinds);
  const std::size_t size = chance.between(1, 20);
  if (kind == "bernoulli") return {kind, {{"layer", "logits"}, {"size", static_cast<double>(size)}}};
  std::vector<double> sizes(size), low(size, -1.0), high(size, 1.0);
  for (double& choices : sizes) choices = static_cast<double>(chance.between(1, 9));
  if (kind == "multi_discrete") {
    return {kind, {{"layer", "logits"}, {"sizes", sizes}, {"start", std::vector<double>(size)}}};
  }
  if (kind == "beta") return {kind, {{"layer", "both"}, {"low", low}, {"high", high}}};
  return {kind,
          {{"layer", "mean"},
           {"std_layer", chance.once_in(2) ? "std" : ""},
           {"log_std", "log_std"},
           {"std_floor", 1e-3},
           {"low", low},
           {"high", high},
           {"rescale", false}}};
}

void head(Chance& chance, const Kernels& kernels) {
  const auto head = make_part<Head>(head_plan(chance), kernels);
  const std::size_t rows = chance.between(1, 70), elements = rows * head->action_size();
  std::vector<Floats> given, vectors, by_given, by_vectors;
  std::vector<MatrixView> views;
  std::vector<const float*> vector_pointers;
  std::vector<float*> given_pointers, by_vector_pointers;
  for (const Learned& layer : head->layers()) {
    const std::size_t stride = layer.size + chance.between(0, 20);
    given.push_back(numbers(rows * stride, chance));
    by_given.emplace_back(rows * stride);
    views.push_back({given.back().data(), stride});
    given_pointers.push_back(by_given.back().data());
  }
  for (const Learned& vector : head->vectors()) {
    vectors.push_back(numbers(vector.size, chance));
    by_vectors.emplace_back(rows * vector.size);
    vector_pointers.push_back(vectors.back().data());
    by_vector_pointers.push_back(chance.once_in(2) ? by_vectors.back().data() : nullptr);
  }
  const Floats action = numbers(elements, chance);
  const std::vector<std::int64_t> choice(elements);  // the first is always there
  Flags mask(rows * head->mask_size());
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = chance.once_in(2);
  const bool is_masked = chance.once_in(2);
  const Floats by_log_prob = numbers(rows, chance), by_entropy = numbers(rows, chance);
  Floats log_prob(rows), entropy(rows);
  Workspace workspace;
  const LearnedRows learned{rows, views, vector_pointers, {workspace, 0}};
  const Done done{action.data(), choice.data(), is_masked ? mask.data() : nullptr};
  head->evaluate(learned, done, log_prob.data(), entropy.data());
  head->gradient(learned, done, by_log_prob.data(), by_entropy.data(), {given_pointers, by_vector_pointers});
  if (is_masked) return;  // what is forbidden may be anything
  const std::size_t size = head->layers()[0].size, stride = views[0].stride;
  for (std::size_t i = 0; i < rows * stride; ++i) {
    if (i % stride >= size || !std::isnan(given[0][i])) continue;
    require(std::isnan(log_prob[i / stride]), "a head hides a NaN in its log-probability");
    require(std::isnan(by_given[0][i]), "a head hides a NaN in its gradient");
  }
}

}  // namespace

void fuzz_learning(Chance& chance) {
  ThreadPool pool(chance.between(1, 4));
  const Kernels& kernels = *chance.one_of(available_kernels());
  switch (chance.between(0, 2)) {
    case 0:
      return update(chance, pool, kernels);
    case 1:
      return recurrence(chance, pool, kernels);
    default:
      return head(chance, kernels);
  }
}

}  // namespace surefoot::fuzz
