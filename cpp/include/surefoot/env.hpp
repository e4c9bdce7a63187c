// An environment of the core: reset, step, observe, save and load. One file an environment, in cpp/envs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "surefoot/options.hpp"
#include "surefoot/random.hpp"

namespace surefoot {

/// What a step takes: `values` for Box actions, `choices` for discrete ones; with the env's own offsets added.
struct Action {
  std::span<const float> values;
  std::span<const std::int64_t> choices;
};

/// What a step gave; time limits are counted outside.
struct Outcome {
  double reward;
  bool terminated;
};

/// One part of the observation: the key of a Dict observation, or the only part, whose key is empty.
struct ObsPart {
  std::string key;
  std::size_t size;
};

/// Bytes of one env: what it fills, and the addresses that it asks for.
struct Footprint {
  std::size_t filled = 0, reserved = 0;
};

/// A reset or step that could not be finished; the env has to be reset before it is used again.
struct EnvFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Rounds as Gymnasium's environment of the same name does: from the same seed both give the same numbers.
class Env {
 public:
  virtual ~Env() = default;

  /// Another env with the same options, before its first reset.
  virtual std::unique_ptr<Env> clone() const = 0;

  /// Of what an env has besides its own members.
  virtual Footprint footprint() const { return {}; }

  virtual std::vector<ObsPart> obs_parts() const = 0;
  virtual std::size_t action_size() const = 0;        // elements of an action
  virtual bool has_choices() const { return false; }  // whether they are choices, not numbers
  virtual std::size_t mask_size() const { return 0; }

  virtual void reset(Generator& random) = 0;
  virtual Outcome step(const Action& action) = 0;
  /// The parts one after the other.
  virtual void observe(double* obs) const = 0;
  virtual void mask(bool* /*allowed*/) const {}

  /// Only the dynamics of a step, without what is made of it; for measuring how fast it could be at best.
  virtual void advance(const Action& action) { step(action); }

  virtual std::size_t state_size() const = 0;
  virtual void save(double* state) const = 0;
  virtual void load(const double* state) = 0;
};

/// Gives an env its `clone` from its copy constructor, and its footprint from its size.
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

/// Makes an env known under its id: `const Registered kCartPole{"CartPole-v1", make<CartPole>};` in the env's own file.
struct Registered {
  Registered(const std::string& id, MakeEnv make);
};

template <class Kind>
std::unique_ptr<Env> make(const Options& options) {
  return std::make_unique<Kind>(options);
}

/// All known ids, sorted.
std::vector<std::string> env_ids();

/// Throws std::invalid_argument for an unknown id or option.
std::unique_ptr<Env> make_env(const std::string& id, const Options& options);

}  // namespace surefoot
