// Envs that step, save and load: what they saved they load, and what they refuse changes nothing.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "worlds.hpp"

namespace surefoot::fuzz {
namespace {

bool all_finite(const StepArrays& slots) {
  const auto finite = [](double value) { return std::isfinite(value); };
  return std::all_of(slots.obs.begin(), slots.obs.end(),
                     [&](const auto& leaf) { return std::all_of(leaf.begin(), leaf.end(), finite); }) &&
         std::all_of(slots.reward.begin(), slots.reward.end(), finite);
}

void step(Engine& engine, Chance& chance, StepArrays& slots, std::size_t steps, bool odd) {
  for (std::size_t i = 0; i < steps; ++i) {
    const Actions actions(engine, chance, 1, odd);
    engine.step(actions.all(), slots.slot());
  }
}

/// Load a spoiled state; whether it was taken.
bool load_spoiled(Engine& engine, Chance& chance, std::vector<double> states) {
  const std::vector<double> before = states_of(engine.rows());
  chance.spoil(states);
  try {
    engine.rows().load_all(states.data());
    return true;
  } catch (const std::invalid_argument&) {
    require(same_bytes(states_of(engine.rows()), before), "changed envs by a state that it refused");
    return false;
  }
}

void set_parameters(Rows& rows, Chance& chance) {
  for (std::size_t index = 0; index < rows.parameters().size(); ++index) {
    std::vector<double> value(size_of(rows.parameters()[index].shape));
    for (double& number : value) number = chance.once_in(2) ? chance.uniform(0.0, 2.0) : chance.odd_number();
    rows.set_parameter(chance.between(0, rows.num_envs() - 1), index, value);
  }
}

void replay(Engine& engine, Chance& chance) {
  const std::size_t steps = chance.between(1, 80), places = steps * engine.rows().size();
  const Actions actions(engine, chance, steps, chance.once_in(4));
  Flags ended(places);
  for (std::size_t i = 0; i < places; ++i) ended[i] = chance.once_in(20);
  engine.replay(steps, actions.all(), ended.data());
}

}  // namespace

void fuzz_env(Chance& chance) {
  const auto engine = random_engine(chance);
  StepArrays slots(engine->rows());
  reset(*engine, chance, slots);
  step(*engine, chance, slots, chance.between(0, 12), false);
  const std::vector<double> saved = states_of(engine->rows());
  if (all_finite(slots)) {
    try {
      engine->rows().load_all(saved.data());
    } catch (const std::invalid_argument&) {
      require(false, "refused a state that it saved");
    }
    require(same_bytes(states_of(engine->rows()), saved), "loaded something else than it saved");
  }
  for (std::size_t round = chance.between(1, 6); round > 0; --round) {
    if (load_spoiled(*engine, chance, saved)) step(*engine, chance, slots, chance.between(1, 6), false);
  }
  if (chance.once_in(2)) set_parameters(engine->rows(), chance);
  if (chance.once_in(2)) replay(*engine, chance);
  step(*engine, chance, slots, chance.between(1, 4), true);
}

}  // namespace surefoot::fuzz
