// Base class of MuJoCo tasks that start near the initial state of the model and observe its coordinates.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "surefoot/mujoco_checks.hpp"
#include "surefoot/mujoco_env.hpp"

namespace surefoot {

class NoisyTask : public MujocoEnv {
 public:
  enum class SpeedNoise { kUniform, kNormal };

  /// Defaults in which the tasks differ.
  struct Defaults {
    std::string xml_file;
    int frame_skip;
    double noise_scale;
    std::size_t hidden = 0;  // first positions that an option excludes from the observation; 0: no such option
    SpeedNoise speed_noise = SpeedNoise::kUniform;
  };

  NoisyTask(const Options& options, const Defaults& defaults)
      : MujocoEnv(options, defaults.xml_file, defaults.frame_skip),
        scale_(reset_noise_scale(options, defaults.noise_scale)),
        hidden_(defaults.hidden),
        speed_noise_(defaults.speed_noise) {
    if (hidden_ > 0 && !options.flag("exclude_current_positions_from_observation", true)) hidden_ = 0;
  }

  std::vector<ObsPart> obs_parts() const override { return {{"", {num_observed()}}}; }
  void observe(double* obs) const override { observe_coordinates(obs); }

 protected:
  std::size_t num_observed() const { return qpos().size() + qvel().size() - hidden_; }
  std::span<const double> observed_qpos() const { return qpos().subspan(hidden_); }

  /// Writes positions and velocities; returns the end.
  double* observe_coordinates(double* obs) const {
    return std::copy(qvel().begin(), qvel().end(), std::copy(observed_qpos().begin(), observed_qpos().end(), obs));
  }

  bool is_finite() const {
    const auto finite = [](double value) { return std::isfinite(value); };
    return std::all_of(qpos().begin(), qpos().end(), finite) && std::all_of(qvel().begin(), qvel().end(), finite);
  }

  /// Positions before velocities, as Gymnasium draws them.
  void reset_model(Generator& random) override {
    std::vector<double> start(init_qpos().begin(), init_qpos().end()), speed(init_qvel().begin(), init_qvel().end());
    for (double& value : start) value += random.uniform(-scale_, scale_);
    for (double& value : speed) {
      value += speed_noise_ == SpeedNoise::kNormal ? scale_ * random.normal() : random.uniform(-scale_, scale_);
    }
    set_state(start, speed);
  }

 private:
  double scale_;
  std::size_t hidden_;
  SpeedNoise speed_noise_;
};

}  // namespace surefoot
