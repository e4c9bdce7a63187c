// An environment of the core: its spaces, reset, step, observe, save and load. One file per environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "surefoot/options.hpp"
#include "surefoot/random.hpp"
#include "surefoot/spaces.hpp"
#include "surefoot/state_reader.hpp"

namespace surefoot {

/// The input of a step: `values` for Box actions; `choices` for all others, counted from the space's `start`. In an env
/// with several agents, the actions of all agents, concatenated.
struct Action {
  std::span<const float> values;
  std::span<const std::int64_t> choices;
};

/// The result of a step for one agent. The engine applies time limits; an env sets `truncated` only when its data or
/// its own horizon runs out.
struct Outcome {
  double reward;
  bool terminated;
  bool truncated = false;
};

/// Memory of one env: bytes in use, and bytes of reserved address space.
struct Footprint {
  std::size_t filled = 0, reserved = 0;
};

/// The data from which MuJoCo renders: a model in its binary format, and the simulated duration of a step.
struct Scene {
  std::vector<char> model;
  double seconds_per_step = 0;
};

/// A reset or step that failed; the env must be reset before it is used again.
struct EnvFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An env. Those with a Gymnasium counterpart of the same name round as it does, so that both give the same numbers
/// from the same seed.
class Env {
 public:
  virtual ~Env() = default;

  /// A new env with the same options, before its first reset.
  virtual std::unique_ptr<Env> clone() const = 0;

  /// Memory that an env owns, including the object itself (`Cloned` adds sizeof(Self)); override it to add buffers.
  virtual Footprint footprint() const { return {}; }

  virtual std::vector<ObsPart> obs_parts() const = 0;
  virtual ActionSpace action_space() const = 0;
  /// Whether actions are masked; a mask has one entry per choice.
  virtual bool has_mask() const { return false; }

  virtual void reset(Generator& random) = 0;
  virtual Outcome step(const Action& action) = 0;
  /// Writes all leaves, concatenated in the order of `obs_parts`.
  virtual void observe(double* obs) const = 0;
  virtual void mask(bool* /*allowed*/) const {}

  /// Numbers that are reported at every step. `measure` writes those of the last step, NaN for a metric without a
  /// value.
  virtual std::vector<MetricSpec> metrics() const { return {}; }
  virtual void measure(double* /*values*/) const {}

  /// Parameters that can be set between rollouts. Throw std::invalid_argument for an invalid value. The engine saves
  /// the values and sets them again, so `save` does not have to.
  virtual std::vector<ParameterSpec> parameters() const { return {}; }
  virtual void set_parameter(std::size_t /*index*/, std::span<const double> /*value*/) {}

  /// Number of agents that act in the same step; each has an observation, an action and an outcome (see `Several`).
  virtual std::size_t num_agents() const { return 1; }
  /// Called after every reset: whether an agent takes part in this episode, so that teams may differ in size. An agent
  /// that does not is neither stepped nor observed until the next reset.
  virtual bool takes_part(std::size_t /*agent*/) const { return true; }
  virtual void step_agents(const Action& actions, Outcome* outcomes) { *outcomes = step(actions); }
  virtual void observe_agent(std::size_t /*agent*/, double* obs) const { observe(obs); }
  virtual void mask_agent(std::size_t /*agent*/, bool* allowed) const { mask(allowed); }
  virtual void measure_agent(std::size_t /*agent*/, double* values) const { measure(values); }

  /// Only the dynamics of a step, without observation and reward; measures the upper bound of an env's speed.
  virtual void advance(const Action& action) { step(action); }

  /// For rendering: the model that MuJoCo draws, and the state of the simulation (`mjSTATE_INTEGRATION`). Empty for
  /// envs that MuJoCo does not simulate.
  virtual Scene scene() const { return {}; }
  virtual std::size_t pose_size() const { return 0; }
  virtual void pose(double* /*state*/) const {}

  /// The complete state as numbers. `load` reads what `save` wrote through the checks of the reader, so that a state
  /// from a damaged or forged file cannot break a later step; the engine tries states on a clone first.
  virtual std::size_t state_size() const = 0;
  virtual void save(double* state) const = 0;
  virtual void load(StateReader& state) = 0;
};

/// Base class of an env with several agents: `class Duel : public Cloned<Duel, Several<>>`. An agent that terminates
/// leaves the game: until the env is reset, its row is invalid, its actions are ignored and it is not observed. The env
/// is reset when the last agent has terminated or the time limit is reached.
template <class Parent = Env>
class Several : public Parent {
 public:
  using Parent::Parent;
  std::size_t num_agents() const override = 0;
  void step_agents(const Action& actions, Outcome* outcomes) override = 0;
  void observe_agent(std::size_t agent, double* obs) const override = 0;

 private:
  Outcome step(const Action&) final { throw std::logic_error("call step_agents of an env with several agents"); }
  void observe(double*) const final { throw std::logic_error("call observe_agent of an env with several agents"); }
};

/// Implements `clone` with the copy constructor, and `footprint` with the size of the class.
template <class Self, class Parent = Env>
class Cloned : public Parent {
 public:
  using Parent::Parent;
  std::unique_ptr<Env> clone() const override { return std::make_unique<Self>(static_cast<const Self&>(*this)); }
  Footprint footprint() const override {
    const Footprint rest = Parent::footprint();
    return {sizeof(Self) + rest.filled, sizeof(Self) + rest.reserved};
  }
};

using MakeEnv = std::function<std::unique_ptr<Env>(const Options&)>;

/// Registers an env under its id: `const Registered kCartPole{"CartPole-v1", make<CartPole>};` in the env's own file.
/// The time limit, in steps per episode (0: none), is for envs in libraries; Gymnasium knows the limits of its own ids.
struct Registered {
  Registered(const std::string& id, MakeEnv make, std::size_t max_episode_steps = 0);
};

template <class Kind>
std::unique_ptr<Env> make(const Options& options) {
  return std::make_unique<Kind>(options);
}

/// All registered ids, sorted.
std::vector<std::string> env_ids();

/// Throws std::invalid_argument for an unknown id or option.
std::unique_ptr<Env> make_env(const std::string& id, const Options& options);

/// Version of the interface between the core and compiled libraries. Increment it whenever a declaration in an
/// installed header changes, so that libraries built with older headers are rejected.
constexpr int kInterfaceVersion = 5;

/// The table that a library of environments exports through `surefoot_library`. The two versions are checked before the
/// rest is read.
struct Library {
  int interface_version, mujoco_version;
  std::vector<std::pair<std::string, std::size_t>> (*envs)();  // ids and time limits
  std::unique_ptr<Env> (*make)(const std::string& id, const Options& options);
};

extern "C" const Library* surefoot_library();

}  // namespace surefoot
