#include "surefoot/rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace surefoot {
namespace {

constexpr std::size_t kMostSteps = std::size_t{1} << 53;  // doubles cannot represent all larger whole numbers

/// Converts exceptions of an env's code to EnvFailure, except std::invalid_argument, with which it rejects values and
/// saved states.
template <class Work>
auto in_call(const char* call, const Work& work) {
  try {
    return work();
  } catch (const EnvFailure&) {
    throw;
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::exception& error) {
    throw EnvFailure(std::string(call) + " threw an exception: " + error.what());
  } catch (...) {
    throw EnvFailure(std::string(call) +
                     " threw something other than a std::exception, so its message is unknown; throw a"
                     " std::runtime_error that says what is wrong");
  }
}

/// Adds the number of the env to the message of a failure.
template <class Work>
auto in_env(std::size_t env, const char* call, const Work& work) {
  const auto named = [env](const std::exception& error) { return "env " + std::to_string(env) + ": " + error.what(); };
  try {
    return in_call(call, work);
  } catch (const EnvFailure& failure) {
    throw EnvFailure(named(failure));
  } catch (const std::invalid_argument& refusal) {
    throw std::invalid_argument(named(refusal));
  }
}

/// Checks that there is one bound for all elements or one per element, and that every element has choices.
void check_spaces(const Env& env) {
  const auto check = [](const Bounds& bounds, std::size_t size, const std::string& what) {
    for (const auto* each : {&bounds.low, &bounds.high}) {
      if (each->size() == 1 || each->size() == size) continue;
      throw std::invalid_argument(what + " has " + std::to_string(each->size()) + " bounds for " +
                                  std::to_string(size) + " elements; give one for all or one each");
    }
  };
  for (const auto& leaf : env.obs_parts()) check(leaf.bounds, leaf.size(), "observation '" + leaf.key + "'");
  const ActionSpace space = env.action_space();
  check(space.bounds, space.size(), "the action space");
  if (std::any_of(space.sizes.begin(), space.sizes.end(), [](auto size) { return size < 1; })) {
    throw std::invalid_argument("an element of the action space has no choices");
  }
  if (env.has_mask() && !space.has_choices()) throw std::invalid_argument("actions of a box cannot be masked");
  for (const auto& parameter : env.parameters()) {
    if (parameter.values.size() == size_of(parameter.shape)) continue;
    throw std::invalid_argument("parameter '" + parameter.name +
                                "' has a number of values that does not match its shape");
  }
}

}  // namespace

Rows::Rows(std::unique_ptr<Env> first, std::size_t num_envs, const Endings& endings)
    : generators_(num_envs),
      elapsed_(num_envs, 0),
      endings_(endings),
      num_agents_(first->num_agents()),
      obs_parts_(first->obs_parts()),
      action_space_(first->action_space()),
      action_size_(action_space_.size()),
      mask_size_(first->has_mask() ? action_space_.num_choices() : 0),
      metrics_(first->metrics()),
      parameters_(first->parameters()),
      parameter_places_(1) {
  check_spaces(*first);
  if (num_agents_ == 0) throw std::invalid_argument("an env must have at least one agent");
  envs_.reserve(num_envs);
  envs_.push_back(std::move(first));
  while (envs_.size() < num_envs) envs_.push_back(envs_.front()->clone());
  for (const auto& leaf : obs_parts_) obs_sizes_.push_back(leaf.size());
  for (const std::size_t size : obs_sizes_) obs_size_ += size;
  std::vector<double> values;
  for (const auto& parameter : parameters_) {
    of_agent_.push_back(parameter.is_of_agent ? parameter.values : std::vector<double>());
    if (!parameter.is_of_agent) values.insert(values.end(), parameter.values.begin(), parameter.values.end());
    parameter_places_.push_back(values.size());
  }
  for (std::size_t env = 0; env < num_envs; ++env) {
    parameter_values_.insert(parameter_values_.end(), values.begin(), values.end());
  }
  if (num_agents_ == 1) return;
  takes_part_.resize(size(), 1);
  outcomes_.resize(size());
}

Footprint Rows::footprint() const {
  const Footprint env = envs_.front()->footprint();
  const std::size_t around = sizeof(envs_[0]) + sizeof(Generator) + sizeof(elapsed_[0]);
  return {env.filled + around, env.reserved + around};
}

void Rows::reseed(std::size_t env, const Generator::Words& words) {
  generators_[env] = Generator(words);
  reset(env);
}

void Rows::reset(std::size_t env) {
  in_env(env, "reset", [&] { envs_[env]->reset(generators_[env]); });
  elapsed_[env] = 0;
  if (num_agents_ == 1) return;
  bool is_empty = true;
  for (std::size_t agent = 0; agent < num_agents_; ++agent) {
    const bool takes_part = in_env(env, "takes_part", [&] { return envs_[env]->takes_part(agent); });
    takes_part_[env * num_agents_ + agent] = takes_part;
    is_empty &= !takes_part;
  }
  if (is_empty) in_env(env, "takes_part", [] { throw EnvFailure("no agent takes part after a reset"); });
}

bool Rows::is_at_limit(std::size_t env) const {
  return elapsed_[env] >= endings_.max_episode_steps && endings_.max_episode_steps > 0;
}

RowStep Rows::counted(const Outcome& outcome, bool is_at_limit) const {
  RowStep step{outcome.reward, outcome.terminated, outcome.truncated || is_at_limit, true};
  if (endings_.truncation_as_termination) {
    step.terminated |= step.truncated;
    step.truncated = false;
  }
  return step;
}

bool Rows::step(std::size_t env, const Action& actions, RowStep* steps) {
  if (num_agents_ == 1) {
    const Outcome outcome = in_env(env, "step", [&] { return envs_[env]->step(actions); });
    ++elapsed_[env];
    *steps = counted(outcome, is_at_limit(env));
    return steps->ended();
  }
  Outcome* outcomes = &outcomes_[env * num_agents_];
  in_env(env, "step_agents", [&] { envs_[env]->step_agents(actions, outcomes); });
  ++elapsed_[env];
  const bool is_cut_off = is_at_limit(env);
  bool is_over = true;
  for (std::size_t agent = 0; agent < num_agents_; ++agent) {
    auto& takes_part = takes_part_[env * num_agents_ + agent];
    steps[agent] = takes_part ? counted(outcomes[agent], is_cut_off) : RowStep{0, false, false, false};
    takes_part = takes_part && !steps[agent].ended();
    is_over &= !takes_part;
  }
  return is_over;
}

void Rows::advance(std::size_t env, const Action& actions) {
  in_env(env, "advance", [&] { envs_[env]->advance(actions); });
}

void Rows::observe(std::size_t row, double* obs) const {
  if (num_agents_ == 1) return in_env(row, "observe", [&] { envs_[row]->observe(obs); });
  takes_part_[row] ? observe_end(row, obs) : static_cast<void>(std::fill_n(obs, obs_size_, 0.0));
}

void Rows::observe_end(std::size_t row, double* obs) const {
  const std::size_t env = row / num_agents_;
  in_env(env, "observe_agent", [&] { envs_[env]->observe_agent(row % num_agents_, obs); });
}

void Rows::mask(std::size_t row, bool* allowed) const {
  if (num_agents_ == 1) return in_env(row, "mask", [&] { envs_[row]->mask(allowed); });
  if (!takes_part_[row]) return static_cast<void>(std::fill_n(allowed, mask_size_, true));
  const std::size_t env = row / num_agents_;
  in_env(env, "mask_agent", [&] { envs_[env]->mask_agent(row % num_agents_, allowed); });
}

void Rows::measure(std::size_t row, double* values) const {
  const std::size_t env = row / num_agents_;
  in_env(env, "measure", [&] { envs_[env]->measure_agent(row % num_agents_, values); });
}

void Rows::set_parameter(std::size_t env, std::size_t index, std::span<const double> value) {
  if (std::any_of(value.begin(), value.end(), [](double number) { return std::isnan(number); })) {
    throw std::invalid_argument("the parameter '" + parameters_[index].name + "' must not be NaN");
  }
  if (parameters_[index].is_of_agent && env > 0) return;
  in_call("set_parameter", [&] { envs_[env]->set_parameter(index, value); });
  std::copy(value.begin(), value.end(), const_cast<double*>(parameter(env, index).data()));
}

std::span<const double> Rows::parameter(std::size_t env, std::size_t index) const {
  if (parameters_[index].is_of_agent) return of_agent_[index];
  const std::size_t begin = parameter_places_[index], end = parameter_places_[index + 1];
  return {parameter_values_.data() + env * parameter_places_.back() + begin, end - begin};
}

std::size_t Rows::state_size() const {
  return kCounted + (num_agents_ > 1 ? num_agents_ : 0) + parameter_places_.back() + envs_.front()->state_size();
}

void Rows::save(std::size_t env, double* state) const {
  for (const std::uint64_t word : generators_[env].words()) *state++ = std::bit_cast<double>(word);
  *state++ = static_cast<double>(elapsed_[env]);
  if (num_agents_ > 1) state = std::copy_n(&takes_part_[env * num_agents_], num_agents_, state);
  state = std::copy_n(parameter_values_.data() + env * parameter_places_.back(), parameter_places_.back(), state);
  in_env(env, "save", [&] { envs_[env]->save(state); });
}

void Rows::load(std::size_t env, const double* state) {
  StateReader reader({state, state_size()});
  Generator::Words words;
  for (std::uint64_t& word : words) word = reader.word();
  generators_[env] = Generator(words);
  elapsed_[env] = reader.count("steps of the episode", kMostSteps);
  for (std::size_t agent = 0; num_agents_ > 1 && agent < num_agents_; ++agent) {
    takes_part_[env * num_agents_ + agent] = reader.flag("takes_part[" + std::to_string(agent) + "]");
  }
  for (std::size_t index = 0; index < parameters_.size(); ++index) {
    if (parameters_[index].is_of_agent) continue;
    std::vector<double> value(parameter(env, index).size());
    for (double& number : value)
      number = std::bit_cast<double>(reader.word());  // the env itself may reject infinite values
    if (!std::equal(value.begin(), value.end(), parameter(env, index).data())) set_parameter(env, index, value);
  }
  envs_[env]->load(reader);
  if (!reader.is_done()) throw std::logic_error("load reads fewer numbers than state_size says");
}

void Rows::load_all(const double* states) {
  check_all(states);
  for (std::size_t env = 0; env < num_envs(); ++env)
    in_env(env, "load", [&] { load(env, states + env * state_size()); });
}

void Rows::check_all(const double* states) const {
  Rows trial(envs_.front()->clone(), 1, endings_);
  std::copy_n(parameter_values_.data(), trial.parameter_values_.size(), trial.parameter_values_.data());
  for (std::size_t env = 0; env < num_envs(); ++env)
    in_env(env, "load", [&] { trial.load(0, states + env * state_size()); });
}

}  // namespace surefoot
