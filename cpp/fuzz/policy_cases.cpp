// Whole rollouts with policies whose weights may be NaN or huge, and policies that get the wrong tensors.
#include <limits>

#include "policies.hpp"
#include "worlds.hpp"

namespace surefoot::fuzz {
namespace {

std::unique_ptr<bool[]> flags(std::size_t count) { return std::unique_ptr<bool[]>(new bool[count]()); }

void collect(Engine& engine, const Policy& policy, Slots& slots, Chance& chance) {
  const Rows& rows = engine.rows();
  const std::size_t steps = chance.between(1, 24), count = rows.size(), places = steps * count;
  const std::size_t chunks = chance.between(1, steps);
  std::vector<std::vector<float>> obs, state, stored, remembered;
  std::vector<float> numbers[4], last_value(count), action(places * rows.action_size());
  for (auto& each : numbers) each.resize(places);
  std::vector<std::int64_t> choice(places * rows.action_size()), length(count);
  std::vector<double> reward(count);
  std::vector<float> metrics(places * rows.metrics().size());
  const auto terminated = flags(places), truncated = flags(places), start = flags(places + count);
  const auto valid = flags(places), mask = flags((places + count) * rows.mask_size());
  std::copy_n(slots.mask.get(), slots.mask ? count * rows.mask_size() : 0, mask.get());
  RolloutArrays arrays{steps,
                       count,
                       {},
                       rows.mask_size() > 0 ? mask.get() : nullptr,
                       action.data(),
                       choice.data(),
                       numbers[0].data(),
                       numbers[1].data(),
                       numbers[2].data(),
                       numbers[3].data(),
                       terminated.get(),
                       truncated.get(),
                       start.get(),
                       last_value.data(),
                       reward.data(),
                       length.data()};
  arrays.valid = rows.num_agents() > 1 ? valid.get() : nullptr;
  arrays.metrics = metrics.empty() ? nullptr : metrics.data();
  std::vector<float> prediction(chance.once_in(2) ? 0 : places * policy.prediction_size());
  arrays.prediction = prediction.empty() ? nullptr : prediction.data();
  const auto pointers = [](std::vector<std::vector<float>>& parts) {
    std::vector<float*> all;
    for (auto& part : parts) all.push_back(part.data());
    return all;
  };
  RolloutKey key{chance.word(), chance.between(0, 9), 0, 1, {}, {}, {}};
  for (std::size_t part = 0; part < rows.obs_sizes().size(); ++part) {
    obs.emplace_back((places + count) * rows.obs_sizes()[part]);
    std::copy(slots.obs[part].begin(), slots.obs[part].end(), obs.back().begin());
    const std::vector<float> bounds(chance.once_in(2) ? 0 : rows.obs_sizes()[part], 0.5f);
    key.low.push_back(bounds);
    key.high.push_back(bounds);
    key.with_moments.push_back(chance.once_in(2));
  }
  for (const std::size_t size : policy.state_sizes()) {
    state.emplace_back(count * size);
    stored.emplace_back(chunks * count * size);
    remembered.emplace_back(count * size);
  }
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) arrays.state_steps.push_back(chunk * steps / chunks);
  arrays.obs = pointers(obs);
  arrays.state = pointers(state);
  arrays.stored_state = pointers(stored);
  std::vector<std::int64_t> acting(count), wanted(count), actor(places);
  if (chance.once_in(2)) {  // the policy also acts as another one
    for (auto* numbers : {&acting, &wanted}) {
      for (std::int64_t& number : *numbers) number = static_cast<std::int64_t>(chance.between(0, 1));
    }
    arrays.others = {{1, &policy, pointers(remembered), chance.once_in(2)}};
    arrays.acting = acting.data();
    arrays.wanted = wanted.data();
    arrays.actor = actor.data();
    arrays.valid = valid.get();
  }
  engine.collect(policy, arrays, key, [] { return true; });
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
  for (const ObsPlan& part : policy.plan().obs) {
    obs.emplace_back(rows * part.size);
    for (float& number : obs.back()) number = static_cast<float>(chance.once_in(30) ? chance.odd_number() : 0.1);
  }
  for (const auto& part : obs) leaves.push_back(part.data());
  for (const std::size_t size : policy.state_sizes()) state.emplace_back(rows * size);
  for (auto& part : state) {
    carried.push_back(part.data());
    remembered.push_back(part.data());
  }
  const auto mask = flags(rows * policy.mask_size()), start = flags(rows);
  for (std::size_t i = 0; i < rows * policy.mask_size(); ++i) mask[i] = chance.once_in(2);
  std::vector<float> action(rows * policy.action_size()), log_prob(rows), value(rows);
  std::vector<float> prediction(rows * policy.prediction_size());
  std::vector<std::int64_t> choice(rows * policy.action_size());
  const bool has_mask = policy.mask_size() > 0 && chance.once_in(2);
  Workspace workspace;
  policy.act(rows, leaves, {carried, start.get()}, has_mask ? mask.get() : nullptr, {chance.word(), 1, 2, 3}, workspace,
             {action.data(), choice.data(), log_prob.data(), value.data(), remembered, prediction.data()});
  policy.value(rows, leaves, {carried, start.get()}, workspace, value.data());
  if (!policy.is_discrete()) policy.head().to_env(rows, action.data(), action.data());
}

}  // namespace

void fuzz_rollout(Chance& chance) {
  const auto engine = random_engine(chance);
  Slots slots(*engine);
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
