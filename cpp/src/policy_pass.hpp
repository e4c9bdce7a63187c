// One chunk of rows on its way through a policy.
#pragma once

#include "policy_weights.hpp"

namespace surefoot {

/// Slots of the workspace; from kEncoder on those of encoders, from kState on one for each part of the state, and after
/// those the other parts' own.
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
  /// Normalizes the observations that want it.
  Pass(const Policy& policy, ObsLeaves obs, const CarriedState& state, std::size_t first, std::size_t rows,
       Workspace& workspace);

  /// Encoders and memory of the actor. With a memory the result stands as long as `next`, or to the end of the pass
  /// if the next state is not wanted; else until the next features or trunk.
  MatrixView actor_features(std::span<float* const> next) const;
  /// The same of the critic, which may take the actor's.
  MatrixView critic_features(MatrixView actor_features, std::span<float* const> next) const;
  /// The result stands until the next features or trunk.
  MatrixView trunk(const Body& body, MatrixView features) const { return network(body.trunk, features); }
  /// The smallest value of all critics, and what they predicted, one after the other, unless `prediction` is null.
  void value(MatrixView latent, float* value, float* prediction) const;

  /// Features as parts take them.
  PartRows rows_of(MatrixView in) const { return {rows_, in, {workspace_, kState + policy_.state_sizes_.size()}}; }

 private:
  MatrixView prepared(std::size_t obs) const;
  /// The encoders' features, after those of `before` if the body takes them.
  MatrixView features(const BodyPlan& plan, const Body& body, MatrixView before) const;
  /// Features through the body's memory.
  MatrixView remember(const Body& body, MatrixView in, std::span<float* const> next) const;
  /// A part of the state as rows begin the step with it.
  float* carried(std::size_t part) const;
  /// An observation through an encoder. The result stands until the next one runs.
  MatrixView encoded(const EncoderPart& part) const;
  /// In `slot` and the one after it, by turns.
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
