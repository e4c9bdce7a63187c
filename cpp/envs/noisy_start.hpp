// How the walking tasks begin: as their model says, with noise on it.
#pragma once

#include <cmath>
#include <span>
#include <stdexcept>
#include <vector>

#include "surefoot/options.hpp"
#include "surefoot/random.hpp"

namespace surefoot {

/// Option `reset_noise_scale`; positions are to be drawn before velocities, as Gymnasium does.
class NoisyStart {
 public:
  NoisyStart(const Options& options, double scale) : scale_(options.number("reset_noise_scale", scale)) {
    // What numpy's uniform refuses to draw from.
    if (!(scale_ >= 0 && std::isfinite(2 * scale_))) {
      throw std::invalid_argument("option 'reset_noise_scale' must be a finite number of at least 0");
    }
  }

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
