// One chunk of rows on its way through a policy.
#pragma once

#include "policy_weights.hpp"

namespace surefoot {

struct Policy::Pass {
  /// Normalizes the observations that want it.
  Pass(const Policy& policy, ObsLeaves obs, std::size_t first, std::size_t rows, Workspace& workspace);

  /// Encoders and trunk; the result stands until the next body.
  MatrixView body(const Body& body) const;
  void sample(MatrixView latent, const bool* mask, const NoiseKey& noise, const Acted& acted) const;
  void value(MatrixView latent, float* value) const;

 private:
  MatrixView prepared(std::size_t obs) const;
  MatrixView features(const Body& body) const;
  MatrixView network(const Network& network, MatrixView in) const;
  MatrixView head(const Layer& layer, MatrixView latent, std::size_t slot) const;
  void sample_gaussian(MatrixView latent, const NoiseKey& key, const Acted& acted) const;
  void sample_choices(MatrixView latent, const bool* mask, const NoiseKey& key, const Acted& acted) const;
  MatrixView state_std(MatrixView latent) const;

  const Policy& policy_;
  const PolicyPlan& plan_;
  const Kernels& kernels_;
  const Weights& weights_;
  ObsLeaves obs_;
  std::size_t first_;
  std::size_t rows_;
  Workspace& workspace_;
  float* normalized_;
};

}  // namespace surefoot
