// The observations of an update: normalized once, since the statistics do not move while it runs.
#pragma once

#include <vector>

#include "batches.hpp"
#include "learning_policy.hpp"

namespace surefoot {

class Observations {
 public:
  Observations(LearningPolicy& net, const Kernels& kernels) : net_(net), kernels_(kernels) {}

  void begin(const LearnerSamples& samples, const TensorReader& tensors);
  /// Normalizing is divided into tasks.
  std::size_t num_tasks() const;
  void normalize(std::size_t task);
  /// To the policy's own matrices, for some samples of a piece.
  void gather(const Piece& piece, Block block);

 private:
  LearningPolicy& net_;
  const Kernels& kernels_;
  const LearnerSamples* samples_ = nullptr;
  std::vector<AlignedFloats> normalized_;  // of all samples
  std::vector<Normalization> shifts_;      // a null shift: as they come
  std::vector<const float*> prepared_;     // normalized, or as they came
};

}  // namespace surefoot
