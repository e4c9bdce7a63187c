// Whole rollouts with policies whose weights may be NaN or huge, and policies that get the wrong tensors.
#include <limits>

#include "policies.hpp"
#include "worlds.hpp"

namespace surefoot::fuzz {
namespace {

void collect(Engine& engine, const Policy& policy, StepArrays& slots, Chance& chance) {
  const Rows& rows = engine.rows();
  const std::size_t steps = chance.between(1, 24), chunks = chance.between(1, steps);
  std::vector<std::size_t> state_steps;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) state_steps.push_back(chunk * steps / chunks);
  Rollout rollout(rows, policy, steps, state_steps);
  rollout.begin(slots);
  if (chance.once_in(2)) rollout.prediction.resize(rollout.places() * policy.prediction_size());
  RolloutKey key{chance.word(), chance.between(0, 9), 0, 1, {}, {}, {}};
  for (const std::size_t size : rows.obs_sizes()) {
    const std::vector<float> bounds(chance.once_in(2) ? 0 : size, 0.5f);
    key.low.push_back(bounds);
    key.high.push_back(bounds);
    key.with_moments.push_back(chance.once_in(2));
  }
  std::vector<std::vector<float>> remembered = rollout.state;
  if (chance.once_in(2)) {  // the policy also acts as another one
    std::vector<std::int64_t> wanted(rows.size());
    for (std::int64_t& number : wanted) number = static_cast<std::int64_t>(chance.between(0, 1));
    rollout.add({1, &policy, pointers(remembered), chance.once_in(2)}, wanted);
    for (std::int64_t& number : rollout.acting) number = static_cast<std::int64_t>(chance.between(0, 1));
  }
  engine.collect(policy, rollout.arrays(), key, [] { return true; });
}

const Kernels& random_kernels(Chance& chance) { return *chance.one_of(available_kernels()); }

/// Take away, rename or reshape some tensors.
void spoil(std::vector<Tensor>& tensors, Chance& chance) {
  for (std::size_t count = chance.between(1, 2); count > 0 && !tensors.empty(); --count) {
    const std::size_t index = chance.between(0, tensors.size() - 1);
    Tensor& tensor = tensors[index];
    switch (chance.between(0, 3)) {
      case 0:
        tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(index));
        break;
      case 1:
        tensor.name += "x";
        break;
      case 2:
        if (!tensor.shape.empty()) tensor.shape.pop_back();
        tensor.numbers.resize(size_of(tensor.shape));
        break;
      default:
        tensor.shape.push_back(chance.between(0, 3));
        if (chance.once_in(2)) tensor.shape.front() = chance.between(0, 9);
        tensor.numbers.resize(size_of(tensor.shape));
    }
  }
}

ActionSpace random_space(Chance& chance) {
  switch (chance.between(0, 3)) {
    case 0:
      return ActionSpace::discrete(static_cast<std::int64_t>(chance.between(1, 40)), 3);
    case 1:
      return ActionSpace::multi_discrete({3, 1, static_cast<std::int64_t>(chance.between(1, 9))});
    case 2:
      return ActionSpace::multi_binary(chance.between(1, 20));
    default:
      return ActionSpace::box({chance.between(1, 20)}, Bounds{{-1.0}, {2.0}});
  }
}

void act(const Policy& policy, Chance& chance) {
  const std::size_t rows = chance.between(0, 70);
  std::vector<std::vector<float>> obs, state;
  std::vector<const float*> leaves, carried;
  std::vector<float*> remembered;
  for (const ObsPlan& leaf : policy.plan().obs) {
    obs.emplace_back(rows * leaf.size);
    for (float& number : obs.back()) number = static_cast<float>(chance.once_in(30) ? chance.odd_number() : 0.1);
  }
  for (const auto& leaf : obs) leaves.push_back(leaf.data());
  for (const std::size_t size : policy.state_sizes()) state.emplace_back(rows * size);
  for (auto& tensor : state) {
    carried.push_back(tensor.data());
    remembered.push_back(tensor.data());
  }
  Flags mask(rows * policy.mask_size()), start(rows);
  for (std::size_t i = 0; i < rows * policy.mask_size(); ++i) mask[i] = chance.once_in(2);
  std::vector<float> action(rows * policy.action_size()), log_prob(rows), value(rows);
  std::vector<float> prediction(rows * policy.prediction_size());
  std::vector<std::int64_t> choice(rows * policy.action_size());
  const bool has_mask = policy.mask_size() > 0 && chance.once_in(2);
  Workspace workspace;
  policy.act(rows, leaves, {carried, start.data()}, has_mask ? mask.data() : nullptr, {chance.word(), 1, 2, 3},
             workspace, {action.data(), choice.data(), log_prob.data(), value.data(), remembered, prediction.data()});
  policy.value(rows, leaves, {carried, start.data()}, workspace, value.data());
  if (!policy.is_discrete()) policy.head().to_env(rows, action.data(), action.data());
}

}  // namespace

void fuzz_rollout(Chance& chance) {
  const auto engine = random_engine(chance);
  StepArrays slots(engine->rows());
  reset(*engine, chance, slots);
  const RandomPolicy random(engine->rows().obs_sizes(), engine->rows().action_space(), chance);
  Policy policy(random.plan, random_kernels(chance));
  policy.sync(random.named());
  for (std::size_t count = chance.between(1, 2); count > 0; --count) collect(*engine, policy, slots, chance);
}

void fuzz_policy(Chance& chance) {
  std::vector<std::size_t> sizes(chance.between(1, 3));
  for (auto& size : sizes) size = chance.between(1, 50);
  RandomPolicy random(sizes, random_space(chance), chance);
  Policy policy(random.plan, random_kernels(chance));
  if (chance.once_in(2)) policy.sync(random.named());
  if (chance.once_in(2)) {
    spoil(random.tensors, chance);
    try {
      policy.sync(random.named());
    } catch (const std::invalid_argument&) {  // it acts on with the weights it had, if any
    }
  }
  act(policy, chance);
}

}  // namespace surefoot::fuzz
