// Arm-v0: turn a hanging arm to a goal. The action is an angle; a PD law makes torques of it inside a step.
#include <algorithm>
#include <cmath>

#include "surefoot/mujoco_env.hpp"

namespace {

using namespace surefoot;

constexpr double kStiffness = 30.0, kDamping = 3.0;
constexpr int kSubsteps = 4;

class Arm final : public Cloned<Arm, MujocoEnv> {
 public:
  // The model lies beside the library.
  explicit Arm(const Options& options) : Cloned(options, "arm.xml", kSubsteps) {}

  std::vector<ObsPart> obs_parts() const override { return {{"", {3}}}; }
  ActionSpace action_space() const override { return ActionSpace::box({1}, Bounds::within({3.0})); }
  std::vector<MetricSpec> metrics() const override { return {{"miss", Summary::kLast}}; }

  Outcome step(const Action& action) override {
    simulate(action.values, false);  // no need for contact forces
    return {-miss() * miss(), false};
  }

  void observe(double* obs) const override {
    obs[0] = qpos()[0];
    obs[1] = qvel()[0];
    obs[2] = goal_;
  }

  void measure(double* values) const override { values[0] = std::abs(miss()); }

  // The simulation saves itself; the goal is this task's own.
  std::size_t state_size() const override { return MujocoEnv::state_size() + 1; }
  void save(double* state) const override {
    *state = goal_;
    MujocoEnv::save(state + 1);
  }
  void load(StateReader& state) override {
    goal_ = state.number("goal", -1.0, 1.0);
    MujocoEnv::load(state);
  }

 protected:
  void reset_model(Generator& random) override {
    const double angle = random.uniform(-1.0, 1.0), speed = 0.0;
    goal_ = random.uniform(-1.0, 1.0);
    set_state({&angle, 1}, {&speed, 1});
  }

  // Called before every substep, where a real joint's controller would act.
  void control(std::span<const float> action, mjData& data) override {
    data.ctrl[0] = kStiffness * (action[0] - data.qpos[0]) - kDamping * data.qvel[0];
  }

 private:
  double miss() const { return qpos()[0] - goal_; }

  double goal_ = 0.0;
};

const Registered kArm{"Arm-v0", make<Arm>, 50};

}  // namespace
