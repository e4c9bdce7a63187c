// The forward pass of one chunk of rows through a policy.
#pragma once

#include "policy_weights.hpp"

namespace surefoot {

/// Slots of the workspace. Encoders use those from kEncoder on; from kState on there is one per tensor of the state,
/// then those of the other arrays.
enum Slot : std::size_t {
  kNormalized,
  kFeatures,
  kEven,
  kOdd,
  kOwnEven,
  kOwnOdd,
  kValues,
  kEncodedEven,
  kEncodedOdd,
  kOwn,
  kKept,
  kEncoder,
  kState = kEncoder + 8
};

struct Policy::Pass {
  /// Normalizes the observations that have statistics.
  Pass(const Policy& policy, ObsLeaves obs, const CarriedState& state, std::size_t first, std::size_t rows,
       Workspace& workspace);

  /// Runs encoders and memory of the actor. With a memory, the result is valid as long as `next`, or until the end of
  /// the pass if `next` is empty; without one, until the next call of features or trunk.
  MatrixView actor_features(std::span<float* const> next) const;
  /// Runs encoders and memory of the critic, which may take the actor's features.
  MatrixView critic_features(MatrixView actor_features, std::span<float* const> next) const;
  /// Runs the trunk; the result is valid until the next call of features or trunk.
  MatrixView trunk(const Body& body, MatrixView features) const { return network(body.trunk, features); }
  /// Writes the smallest value of all critics and, unless `prediction` is null, the concatenated predictions.
  void value(MatrixView latent, float* value, float* prediction) const;

  /// Wraps features as the input of a part.
  PartRows rows_of(MatrixView in) const { return {rows_, in, {workspace_, kState + policy_.state_sizes_.size()}}; }

 private:
  MatrixView prepared(std::size_t obs) const;
  /// Runs the encoders; their features come after `before` if the body takes it.
  MatrixView features(const BodyPlan& plan, const Body& body, MatrixView before) const;
  /// Runs the memory of the body.
  MatrixView remember(const Body& body, MatrixView in, std::span<float* const> next) const;
  /// A tensor of the state before the step; zero for rows that start an episode.
  float* carried(std::size_t tensor) const;
  /// Runs an encoder. The result is valid until the next encoder runs.
  MatrixView encoded(const EncoderPart& part) const;
  /// Runs linear layers; their outputs alternate between `slot` and `slot + 1`.
  MatrixView network(const Network& network, MatrixView in, std::size_t slot = kEven) const;

  const Policy& policy_;
  const PolicyPlan& plan_;
  const Kernels& kernels_;
  const Weights& weights_;
  ObsLeaves obs_;
  CarriedState state_;
  std::size_t first_;
  std::size_t rows_;
  Workspace& workspace_;
  float* normalized_;
};

}  // namespace surefoot
