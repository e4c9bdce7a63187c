// A critic: features to its own prediction, and that to a value.
#pragma once

#include "surefoot/parts/part.hpp"

namespace surefoot {

class Critic : public Part {
 public:
  using Part::Part;

  /// Numbers of one prediction.
  virtual std::size_t prediction_size() const = 0;
  /// Predictions in the form that the critic's loss takes, in the scratch of the rows.
  virtual MatrixView predict(const PartRows& rows) const = 0;
  /// Expected returns of predictions, in raw units.
  virtual void value(std::size_t rows, MatrixView prediction, float* value) const = 0;
};

}  // namespace surefoot
