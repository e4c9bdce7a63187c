// Engines of random envs, with actions that are in their spaces or not.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chance.hpp"
#include "surefoot/engine.hpp"

namespace surefoot::fuzz {

/// Of a random env with random options, which may be refused.
std::unique_ptr<Engine> random_engine(Chance& chance);

/// Where a step of all rows goes, with not a byte to spare.
struct Slots {
  explicit Slots(Engine& engine);
  StepSlot slot();

  std::vector<std::vector<double>> obs, final_obs;
  std::vector<double> reward;
  std::unique_ptr<bool[]> terminated, truncated, valid, mask;
  std::vector<float> metrics;
};

void reset(Engine& engine, Chance& chance, Slots& slots);

/// Random actions of `steps` steps; with `odd` ones, some are not in the space.
struct Actions {
  Actions(Engine& engine, Chance& chance, std::size_t steps, bool odd);
  RowActions all() const;

  bool has_choices;
  std::vector<float> values;
  std::vector<std::int64_t> choices;
};

}  // namespace surefoot::fuzz
