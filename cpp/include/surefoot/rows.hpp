// The environments of a run, each with its generator, time limit and parameters. A row is one agent of one environment;
// rows of the same environment are neighbors.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "surefoot/env.hpp"

namespace surefoot {

/// Rules that end episodes, besides the envs themselves.
struct Endings {
  std::size_t max_episode_steps = 0;  // 0: no limit
  bool truncation_as_termination = false;
};

/// Flags and reward of one step of a row; not valid if its agent was out of the game.
struct RowStep {
  double reward;
  bool terminated, truncated, valid;

  bool ended() const { return terminated || truncated; }
};

class Rows {
 public:
  /// Creates clones of an env.
  Rows(std::unique_ptr<Env> first, std::size_t num_envs, const Endings& endings);
  Rows(const std::string& id, const Options& options, std::size_t num_envs, const Endings& endings)
      : Rows(make_env(id, options), num_envs, endings) {}

  std::size_t size() const { return envs_.size() * num_agents_; }
  std::size_t num_envs() const { return envs_.size(); }
  std::size_t num_agents() const { return num_agents_; }  // of each env
  const std::vector<ObsPart>& obs_parts() const { return obs_parts_; }
  const std::vector<std::size_t>& obs_sizes() const { return obs_sizes_; }  // of each leaf
  std::size_t obs_size() const { return obs_size_; }                        // of all leaves together
  const ActionSpace& action_space() const { return action_space_; }
  std::size_t action_size() const { return action_size_; }
  std::size_t mask_size() const { return mask_size_; }
  const std::vector<MetricSpec>& metrics() const { return metrics_; }
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }

  /// Memory of each env.
  Footprint footprint() const;

  /// Sets the generator of an env, or starts an episode. If the env fails, the EnvFailure names it.
  void reseed(std::size_t env, const Generator::Words& words);
  void reset(std::size_t env);
  /// Steps an env with the actions of all its agents and fills one RowStep per agent. Returns whether the episode is
  /// over; the env is not reset yet, so that its last observations can be read.
  bool step(std::size_t env, const Action& actions, RowStep* steps);
  /// Steps an env with only its dynamics.
  void advance(std::size_t env, const Action& actions);

  /// Writes the observation that a row acts on next, all leaves concatenated. For an agent that is out of the game,
  /// writes zeros and allows every choice.
  void observe(std::size_t row, double* obs) const;
  void mask(std::size_t row, bool* allowed) const;
  /// Writes the last observation of a row whose episode has just ended.
  void observe_end(std::size_t row, double* obs) const;
  /// Writes the metrics of a row's last step.
  void measure(std::size_t row, double* values) const;

  /// For rendering an env.
  Scene scene(std::size_t env) const { return envs_[env]->scene(); }
  std::size_t pose_size() const { return envs_.front()->pose_size(); }
  void pose(std::size_t env, double* state) const { envs_[env]->pose(state); }

  /// Sets or returns a parameter of an env. Throws what the env throws for an invalid value.
  void set_parameter(std::size_t env, std::size_t index, std::span<const double> value);
  /// A parameter that belongs to the agent is shared by all envs: any env returns it, and setting it on the first sets
  /// it.
  std::span<const double> parameter(std::size_t env, std::size_t index) const;

  /// The complete state of an env as numbers; the generator's words are stored as the bits of doubles.
  std::size_t state_size() const;
  void save(std::size_t env, double* state) const;
  /// Throws std::invalid_argument for a state that the env cannot have saved; the env must then be reset.
  void load(std::size_t env, const double* state);
  /// Loads the states of all envs; if one is rejected, no env changes.
  void load_all(const double* states);
  /// Throws what `load_all` would throw, without loading.
  void check_all(const double* states) const;

 private:
  static constexpr std::size_t kCounted =
      5;  // generator words and the elapsed steps, stored before the env's own state

  bool is_at_limit(std::size_t env) const;
  RowStep counted(const Outcome& outcome, bool is_at_limit) const;

  std::vector<std::unique_ptr<Env>> envs_;
  std::vector<Generator> generators_;
  std::vector<std::size_t> elapsed_;
  Endings endings_;
  std::size_t num_agents_;
  std::vector<ObsPart> obs_parts_;
  std::vector<std::size_t> obs_sizes_;
  ActionSpace action_space_;
  std::size_t obs_size_ = 0, action_size_, mask_size_;
  std::vector<MetricSpec> metrics_;
  std::vector<ParameterSpec> parameters_;
  std::vector<std::size_t> parameter_places_;  // offset of each parameter in an env's values, and the end of the last
  std::vector<double> parameter_values_;       // values of all envs
  std::vector<std::vector<double>> of_agent_;  // values of each agent parameter
  // Only for envs with several agents, one per row: whether the agent takes part, and its last outcome.
  std::vector<unsigned char> takes_part_;
  std::vector<Outcome> outcomes_;
};

}  // namespace surefoot
