// Random returns of one asset; see surefoot/envs/tasks/return_process.py.
#pragma once

#include <cmath>
#include <span>

#include "bounded_options.hpp"
#include "surefoot/random.hpp"

namespace surefoot {

/// Options are read only where they have an effect; elsewhere they are rejected as unknown.
class ReturnProcess {
 public:
  static constexpr double kMost = 1e3;  // limit of drifts and volatilities, so that nothing overflows

  explicit ReturnProcess(const Options& options) {
    const std::string kind = one_of(options, "process", {"normal", "student_t", "jump"});
    calm_ = {bounded_number(options, "drift", 0.0005, -kMost, kMost),
             bounded_number(options, "volatility", 0.01, 0.0, kMost)};
    if (kind == "student_t") {
      degrees_ = bounded_number(options, "degrees", 5.0, 2.1, kMost);
      to_unit_variance_ = std::sqrt((degrees_ - 2.0) / degrees_);
    }
    if (kind == "jump") {
      jump_probability_ = share(options, "jump_probability", 0.02);
      jump_ = {bounded_number(options, "jump_mean", -0.06, -kMost, kMost),
               bounded_number(options, "jump_std", 0.03, 0.0, kMost)};
      has_jumps_ = true;
    }
    stress_begins_ = share(options, "stress_begins", 0.0);
    if (stress_begins_ == 0.0) return;
    stress_ends_ = share(options, "stress_ends", 0.1);
    stress_ = {bounded_number(options, "stress_drift", -0.002, -kMost, kMost),
               bounded_number(options, "stress_volatility", 0.03, 0.0, kMost)};
  }

  void draw(Generator& random, std::span<double> returns) const {
    const bool has_regimes = stress_begins_ > 0.0;
    bool is_stress = has_regimes && random.uniform() < stress_begins_ / (stress_begins_ + stress_ends_);
    for (double& each : returns) {
      if (has_regimes && random.uniform() < (is_stress ? stress_ends_ : stress_begins_)) is_stress = !is_stress;
      const Normal& regime = is_stress ? stress_ : calm_;
      const double noise = degrees_ > 0.0 ? random.student_t(degrees_) * to_unit_variance_ : random.normal();
      each = regime.mean + regime.std * noise;
      if (has_jumps_ && random.uniform() < jump_probability_) each += jump_.mean + jump_.std * random.normal();
    }
  }

 private:
  struct Normal {
    double mean = 0.0, std = 0.0;
  };

  Normal calm_, stress_, jump_;
  double degrees_ = 0.0;  // 0: noise is normal
  double to_unit_variance_ = 1.0;
  bool has_jumps_ = false;
  double jump_probability_ = 0.0;
  double stress_begins_ = 0.0, stress_ends_ = 0.0;
};

}  // namespace surefoot
