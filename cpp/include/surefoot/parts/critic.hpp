// A critic: maps features to a prediction, and predictions to values.
#pragma once

#include "surefoot/parts/part.hpp"

namespace surefoot {

/// Targets of a critic: raw returns, and its predictions in the rollout.
struct ValueTargets {
  const float* returns;       // [count]
  MatrixView old_prediction;  // [count, prediction_size] raw units; the value for critics with prediction_size 1
  float clip;                 // range around the old predictions; infinity: no clipping
};

class Critic : public Part {
 public:
  using Part::Part;

  /// Number of elements of one prediction.
  virtual std::size_t prediction_size() const = 0;
  /// Computes predictions in the form that `loss` takes, in the scratch of the rows.
  virtual MatrixView predict(const PartRows& rows) const = 0;
  /// Converts predictions to expected returns, in raw units.
  virtual void value(std::size_t rows, MatrixView prediction, float* value) const = 0;

  /// Converts all elements of predictions to raw units; output rows are `stride` apart.
  virtual void decode(std::size_t rows, MatrixView prediction, float* out, std::size_t stride) const = 0;

  /// Linear layers that take the features, in the order of `LearnedRows::given`.
  virtual std::vector<Learned> layers() const = 0;
  /// Other tensors that it uses, among them the statistics of returns, which change between rollout and learning.
  virtual std::vector<Learned> vectors() const { return {}; }
  /// Computes the loss of each row and its gradient.
  virtual void loss(const LearnedRows& rows, const ValueTargets& targets, float* loss,
                    const GivenGradient& out) const = 0;
};

}  // namespace surefoot
