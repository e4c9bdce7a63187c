// One chunk of rows on its way through a policy.
#pragma once

#include "policy_weights.hpp"

namespace surefoot {

struct Policy::Pass {
  /// Normalizes the observations that want it.
  Pass(const Policy& policy, ObsLeaves obs, std::size_t first, std::size_t rows, Workspace& workspace);

  /// Encoders and trunk; the result stands until the next body.
  Rows body(const Body& body) const;
  void sample(Rows latent, const bool* mask, const NoiseKey& noise, const Acted& acted) const;
  void value(Rows latent, float* value) const;

 private:
  Rows prepared(std::size_t obs) const;
  Rows features(const Body& body) const;
  Rows network(const Network& network, Rows in) const;
  Rows head(const Layer& layer, Rows latent, std::size_t slot) const;
  void sample_gaussian(Rows latent, const NoiseKey& key, const Acted& acted) const;
  void sample_choices(Rows latent, const bool* mask, const NoiseKey& key, const Acted& acted) const;
  Rows state_std(Rows latent) const;

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
