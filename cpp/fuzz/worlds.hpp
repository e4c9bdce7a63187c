// Engines of random envs, with actions that are in their spaces or not.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../tests/engine_arrays.hpp"
#include "chance.hpp"

namespace surefoot::fuzz {

/// Of a random env with random options, which may be refused.
std::unique_ptr<Engine> random_engine(Chance& chance);

void reset(Engine& engine, Chance& chance, StepArrays& slots);

/// Random actions of `steps` steps; with `odd` ones, some are not in the space.
struct Actions {
  Actions(Engine& engine, Chance& chance, std::size_t steps, bool odd);
  RowActions all() const;

  bool has_choices;
  std::vector<float> values;
  std::vector<std::int64_t> choices;
};

}  // namespace surefoot::fuzz
