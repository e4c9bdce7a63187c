// A term of the objective: losses of samples, and how they change with what the policy gave.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "surefoot/parts/critic.hpp"

namespace surefoot {

/// The scalars of an update that schedules may move, by name.
using Knobs = std::map<std::string, double>;

/// Some rows of a minibatch: what the policy gave, and what there is to learn from.
struct ObjectiveRows {
  std::size_t count;
  const float* log_ratio;  // of new to old action probabilities
  const float* entropy;
  const float* advantage;
  const float* returns;
  const float* old_value;
  const Critic& critic;
  LearnedRows predicted;                      // by the critic
  std::span<const std::size_t> vector_sizes;  // of the critic's vectors
  GivenGradient scratch;                      // as large as the gradient of the prediction
};

/// What a row's losses change with; terms add their parts.
struct ObjectiveGradient {
  float* log_prob;           // [count]
  float* entropy;            // [count]
  GivenGradient prediction;  // of what the critic's layers gave
};

class Term {
 public:
  explicit Term(const Kernels& kernels) : kernels_(kernels) {}
  virtual ~Term() = default;
  Term(const Term&) = delete;
  Term& operator=(const Term&) = delete;

  /// Names of what it measures of each sample, its loss first.
  virtual std::vector<std::string> measures() const { return {"loss"}; }
  /// Before an update.
  virtual void begin(const Knobs&) {}
  /// Measure rows, one column each; add `weight` times their losses to the gradient, unless it is 0.
  virtual void run(const ObjectiveRows& rows, float weight, std::span<float* const> measures,
                   const ObjectiveGradient& out) const = 0;

 protected:
  const Kernels& kernels_;
};

}  // namespace surefoot
