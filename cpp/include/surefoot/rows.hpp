// The environments of a run with what is counted around each: its generator, its time limit and its parameters. A row
// is one agent of one environment; those of an environment are neighbors.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "surefoot/env.hpp"

namespace surefoot {

/// How episodes end besides by themselves.
struct Endings {
  std::size_t max_episode_steps = 0;  // 0: no limit
  bool truncation_as_termination = false;
};

/// The flags and the reward of one row's step; not valid where its agent was out of the game.
struct RowStep {
  double reward;
  bool terminated, truncated, valid;

  bool ended() const { return terminated || truncated; }
};

class Rows {
 public:
  /// Clones of an env.
  Rows(std::unique_ptr<Env> first, std::size_t num_envs, const Endings& endings);
  Rows(const std::string& id, const Options& options, std::size_t num_envs, const Endings& endings)
      : Rows(make_env(id, options), num_envs, endings) {}

  std::size_t size() const { return envs_.size() * num_agents_; }
  std::size_t num_envs() const { return envs_.size(); }
  std::size_t num_agents() const { return num_agents_; }  // of each env
  const std::vector<ObsPart>& obs_parts() const { return obs_parts_; }
  const std::vector<std::size_t>& obs_sizes() const { return obs_sizes_; }  // of each part
  std::size_t obs_size() const { return obs_size_; }                        // of all parts together
  const ActionSpace& action_space() const { return action_space_; }
  std::size_t action_size() const { return action_size_; }
  std::size_t mask_size() const { return mask_size_; }
  const std::vector<MetricSpec>& metrics() const { return metrics_; }
  const std::vector<ParameterSpec>& parameters() const { return parameters_; }

  /// Of each env.
  Footprint footprint() const;

  /// Give an env its generator, and start an episode. Where an env fails, the EnvFailure says which.
  void reseed(std::size_t env, const Generator::Words& words);
  void reset(std::size_t env);
  /// Step an env with the actions of all its agents; fills a RowStep for each. Whether its episode is over: then it
  /// waits to be reset, so that last observations can be read before.
  bool step(std::size_t env, const Action& actions, RowStep* steps);
  /// Only the dynamics.
  void advance(std::size_t env, const Action& actions);

  /// What a row acts on next, all parts one after the other; zeros, and every choice, where its agent is out of the
  /// game.
  void observe(std::size_t row, double* obs) const;
  void mask(std::size_t row, bool* allowed) const;
  /// The last observation of a row whose episode has just ended.
  void observe_end(std::size_t row, double* obs) const;
  /// The metrics of a row's last step.
  void measure(std::size_t row, double* values) const;

  /// For pictures of an env.
  Scene scene(std::size_t env) const { return envs_[env]->scene(); }
  std::size_t pose_size() const { return envs_.front()->pose_size(); }
  void pose(std::size_t env, double* state) const { envs_[env]->pose(state); }

  /// Set a parameter of an env, and what it is set to now. Throws what the env throws of a value that makes no sense.
  void set_parameter(std::size_t env, std::size_t index, std::span<const double> value);
  /// One of the agent is that of all envs, whichever is asked for, and set through the first.
  std::span<const double> parameter(std::size_t env, std::size_t index) const;

  /// An env's whole state in numbers; a generator's words travel in the bits of doubles.
  std::size_t state_size() const;
  void save(std::size_t env, double* state) const;
  /// Throws std::invalid_argument of a state that cannot have been saved; the env must then be reset.
  void load(std::size_t env, const double* state);
  /// Of all envs; if one state is refused, all envs keep what they have.
  void load_all(const double* states);
  /// Throws what `load_all` would throw.
  void check_all(const double* states) const;

 private:
  static constexpr std::size_t kCounted = 5;  // the generator's words, and the steps of the running episode

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
  std::vector<std::size_t> parameter_places_;  // where each begins among an env's values, and where the last one ends
  std::vector<double> parameter_values_;       // of all envs
  std::vector<std::vector<double>> of_agent_;  // values of each parameter that belongs to the agent
  // Only of envs with several agents, of all rows: whether each takes part, and what its last step gave.
  std::vector<unsigned char> takes_part_;
  std::vector<Outcome> outcomes_;
};

}  // namespace surefoot
