// MyRobot-v0: a cart balances a pole. my_robot.xml is its MuJoCo model; put your own robot's in its place.
// Build it with `surefoot native build my_robot.cpp`; my_robot.py is the same in Python, for `surefoot verify`.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "surefoot/mujoco_env.hpp"

namespace {

using namespace surefoot;

constexpr double kNoise = 0.05, kFarthestTilt = 0.5, kDrift = 0.1;
constexpr int kSubsteps = 4;             // simulation substeps per step
constexpr std::size_t kTimeLimit = 200;  // steps per episode

class MyRobot final : public Cloned<MyRobot, MujocoEnv> {
 public:
  // The model file is next to the library; `env.kwargs: {xml_file: ..., frame_skip: ...}` selects others.
  explicit MyRobot(const Options& options) : Cloned(options, "my_robot.xml", kSubsteps) {
    if (model().nq < 2 || model().nu < 1) throw std::invalid_argument("the model needs two joints and a motor");
  }

  // Positions and velocities of all joints. The action is one number per actuator, within its control range.
  std::vector<ObsPart> obs_parts() const override { return {{"", {qpos().size() + qvel().size()}}}; }
  void observe(double* obs) const override {
    std::copy(qvel().begin(), qvel().end(), std::copy(qpos().begin(), qpos().end(), obs));
  }

  // One step: its reward, and whether the episode terminated. The engine applies the time limit.
  Outcome step(const Action& action) override {
    simulate(action.values, false);  // true also computes contact forces
    const bool has_fallen = !(tilt() < kFarthestTilt);
    return {1.0 - kDrift * std::abs(qpos()[0]), has_fallen};
  }

  // env/tilt in the metrics is the mean over an episode.
  std::vector<MetricSpec> metrics() const override { return {{"tilt", Summary::kMean}}; }
  void measure(double* values) const override { values[0] = tilt(); }

  // Domain randomization: a hook sets the motor strength of each env. Call refresh_model() after changing masses or
  // geometry.
  std::vector<ParameterSpec> parameters() const override { return {ParameterSpec::number("gear", 10.0)}; }
  void set_parameter(std::size_t, std::span<const double> value) override {
    if (!std::isfinite(value[0])) throw std::invalid_argument("the gear must be finite");
    own_model().actuator_gear[0] = value[0];
  }

 protected:
  // A new episode, near the initial state of the model. Draw all random numbers from `random`.
  void reset_model(Generator& random) override {
    std::vector<double> start(init_qpos().begin(), init_qpos().end()), speed(init_qvel().begin(), init_qvel().end());
    for (double& value : start) value += random.uniform(-kNoise, kNoise);
    for (double& value : speed) value += random.uniform(-kNoise, kNoise);
    set_state(start, speed);
  }

  // Called before every substep, at the rate of a real joint's controller.
  void control(std::span<const float> action, mjData& data) override {
    std::copy(action.begin(), action.end(), data.ctrl);
  }

 private:
  double tilt() const { return std::abs(qpos()[1]); }
};

const Registered kMyRobot{"MyRobot-v0", make<MyRobot>, kTimeLimit};

}  // namespace
