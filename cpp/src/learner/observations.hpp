// The observations of an update, normalized only once: the statistics are constant during an update.
#pragma once

#include <vector>

#include "batches.hpp"
#include "learning_policy.hpp"

namespace surefoot {

class Observations {
 public:
  Observations(LearningPolicy& net, const Kernels& kernels) : net_(net), kernels_(kernels) {}

  void begin(const LearnerSamples& samples, const TensorReader& tensors);
  /// Normalization is divided into tasks.
  std::size_t num_tasks() const;
  void normalize(std::size_t task);
  /// Copies observations of some samples of a piece to the matrices of the policy.
  void gather(const Piece& piece, Block block);

 private:
  LearningPolicy& net_;
  const Kernels& kernels_;
  const LearnerSamples* samples_ = nullptr;
  std::vector<AlignedFloats> normalized_;  // normalized observations of all samples
  std::vector<Normalization> shifts_;      // a null shift: not normalized
  std::vector<const float*> prepared_;     // normalized, or the original arrays
};

}  // namespace surefoot
