// The environments of a run, one a row, with what is counted around each: its generator and its time limit.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "surefoot/env.hpp"

namespace surefoot {

/// How episodes end besides by themselves.
struct Endings {
  std::size_t max_episode_steps = 0;  // 0: no limit
  bool truncation_as_termination = false;
};

/// The flags and the reward of one row's step.
struct RowStep {
  double reward;
  bool terminated, truncated;

  bool ended() const { return terminated || truncated; }
};

class Rows {
 public:
  Rows(const std::string& id, const Options& options, std::size_t num_rows, const Endings& endings);

  std::size_t size() const { return envs_.size(); }
  const std::vector<ObsPart>& obs_parts() const { return obs_parts_; }
  std::size_t obs_size() const { return obs_size_; }  // of all parts together
  std::size_t action_size() const { return action_size_; }
  std::size_t mask_size() const { return mask_size_; }
  bool has_choices() const { return envs_.front()->has_choices(); }

  /// Of each row.
  Footprint footprint() const;

  /// Give a row its generator, and start it anew. Where a row fails, the EnvFailure says which.
  void reseed(std::size_t row, const Generator::Words& words);
  void reset(std::size_t row);
  /// Step a row; one that ended waits to be reset, so that its last observation can be read before.
  RowStep step(std::size_t row, const Action& action);
  /// Only the dynamics.
  void advance(std::size_t row, const Action& action);
  /// All parts, one after the other.
  void observe(std::size_t row, double* obs) const { envs_[row]->observe(obs); }
  void mask(std::size_t row, bool* allowed) const { envs_[row]->mask(allowed); }

  /// A row's whole state in numbers; a generator's words travel in the bits of doubles.
  std::size_t state_size() const { return envs_.front()->state_size() + kCounted; }
  void save(std::size_t row, double* state) const;
  void load(std::size_t row, const double* state);

 private:
  static constexpr std::size_t kCounted = 5;  // the generator's words, and the steps of the running episode

  std::vector<std::unique_ptr<Env>> envs_;
  std::vector<Generator> generators_;
  std::vector<std::size_t> elapsed_;
  Endings endings_;
  std::vector<ObsPart> obs_parts_;
  std::size_t obs_size_ = 0, action_size_ = 0, mask_size_ = 0;
};

}  // namespace surefoot
