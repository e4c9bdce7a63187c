// A term of the objective: losses of samples, and how they change with what the policy gave.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "surefoot/parts/critic.hpp"

namespace surefoot {

/// The scalars of an update that schedules may move, by name.
using Knobs = std::map<std::string, double>;

/// A critic with what it predicted for some rows, and what there is to learn from.
struct CriticRows {
  const Critic& critic;
  LearnedRows predicted;
  MatrixView old_prediction;
  std::span<const std::size_t> vector_sizes;
  GivenGradient scratch;   // as large as the gradient of the prediction
  GivenGradient gradient;  // of what its layers gave; terms add their parts
};

/// Some rows of a minibatch: what the policy gave, and what there is to learn from.
struct ObjectiveRows {
  std::size_t count;
  const float* log_ratio;  // of new to old action probabilities
  const float* entropy;
  const float* advantage;
  const float* returns;
  std::span<const CriticRows> critics;
};

/// What a row's losses change with; terms add their parts.
struct ObjectiveGradient {
  float* log_prob;  // [count]
  float* entropy;   // [count]
};

class Term {
 public:
  explicit Term(const Kernels& kernels) : kernels_(kernels) {}
  virtual ~Term() = default;
  Term(const Term&) = delete;
  Term& operator=(const Term&) = delete;

  /// Names of what it measures of each sample, its loss first.
  virtual std::vector<std::string> measures() const { return {"loss"}; }
  /// Whether it reads what critics predicted in the rollout, which is not gathered for nobody.
  virtual bool takes_old_predictions() const { return false; }
  /// Before an update.
  virtual void begin(const Knobs&) {}
  /// Measure rows, one column each; add `weight` times their losses to the gradient, unless it is 0.
  virtual void run(const ObjectiveRows& rows, float weight, std::span<float* const> measures,
                   const ObjectiveGradient& out) const = 0;

 protected:
  const Kernels& kernels_;
};

}  // namespace surefoot
