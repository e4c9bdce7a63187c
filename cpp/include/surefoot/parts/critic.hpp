// A critic: features to its own prediction, and that to a value.
#pragma once

#include "surefoot/parts/part.hpp"

namespace surefoot {

/// The targets of a critic: raw returns, and its predictions in the rollout.
struct ValueTargets {
  const float* returns;       // [count]
  MatrixView old_prediction;  // [count, prediction_size] raw units; or the value, for critics that predict nothing else
  float clip;                 // around the old predictions; infinity: none
};

class Critic : public Part {
 public:
  using Part::Part;

  /// Numbers of one prediction.
  virtual std::size_t prediction_size() const = 0;
  /// Predictions in the form that the critic's loss takes, in the scratch of the rows.
  virtual MatrixView predict(const PartRows& rows) const = 0;
  /// Expected returns of predictions, in raw units.
  virtual void value(std::size_t rows, MatrixView prediction, float* value) const = 0;

  /// The same of all their numbers, into rows that are `stride` apart.
  virtual void decode(std::size_t rows, MatrixView prediction, float* out, std::size_t stride) const = 0;

  /// Linear layers of the features, in the order in which `given` has them.
  virtual std::vector<Learned> layers() const = 0;
  /// Other tensors that it computes from; statistics of returns among them, which change between rollout and learning.
  virtual std::vector<Learned> vectors() const { return {}; }
  /// The loss of each row, and its gradient.
  virtual void loss(const LearnedRows& rows, const ValueTargets& targets, float* loss,
                    const GivenGradient& out) const = 0;
};

}  // namespace surefoot
