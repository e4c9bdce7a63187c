// The initial state of the walking tasks: that of the model, with noise.
#pragma once

#include <span>
#include <vector>

#include "surefoot/mujoco_checks.hpp"
#include "surefoot/options.hpp"
#include "surefoot/random.hpp"

namespace surefoot {

/// Option `reset_noise_scale`; draw positions before velocities, as Gymnasium does.
class NoisyStart {
 public:
  NoisyStart(const Options& options, double scale) : scale_(reset_noise_scale(options, scale)) {}

  std::vector<double> uniform(std::span<const double> start, Generator& random) const {
    std::vector<double> noisy(start.begin(), start.end());
    for (double& value : noisy) value += random.uniform(-scale_, scale_);
    return noisy;
  }

  std::vector<double> normal(std::span<const double> start, Generator& random) const {
    std::vector<double> noisy(start.begin(), start.end());
    for (double& value : noisy) value += scale_ * random.normal();
    return noisy;
  }

 private:
  double scale_;
};

}  // namespace surefoot
