// Crane-v0: hold an arm with an unknown load at an angle, in gusts. The load differs from episode to episode, the gusts
// from step to step, and the controller cancels gravity with what MuJoCo has computed for this very substep.
#include <cmath>
#include <stdexcept>

#include "surefoot/mujoco_env.hpp"
#include "surefoot/step_random.hpp"

namespace {

using namespace surefoot;

constexpr int kSubsteps = 4;
constexpr double kStiffness = 30.0, kDamping = 3.0, kLightest = 0.5, kHeaviest = 3.0;

// A model can be written by the task itself.
const Xml kModel{R"(
<mujoco>
  <option timestep="0.005" integrator="implicitfast"/>
  <worldbody>
    <body name="arm">
      <joint name="hinge" type="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.03" mass="1"/>
      <body name="load" pos="0 0 -0.5"><geom size="0.05" mass="1"/></body>
    </body>
  </worldbody>
  <actuator><motor joint="hinge" ctrlrange="-20 20"/></actuator>
</mujoco>)"};

class Crane final : public Cloned<Crane, MujocoEnv> {
 public:
  explicit Crane(const Options& options)
      : Cloned(options, kModel, kSubsteps), load_(id_of(mjOBJ_BODY, "load")), strength_(options.number("gust", 0.5)) {
    control_inside_substeps();
  }

  std::vector<ObsPart> obs_parts() const override { return {{"", {2}}}; }
  ActionSpace action_space() const override { return ActionSpace::box({1}, Bounds::within({1.5})); }
  std::vector<MetricSpec> metrics() const override { return {{"load", Summary::kLast}, {"thrown", Summary::kLast}}; }

  // A curriculum may raise or lower it in the middle of an episode: the next reset draws from the new range.
  std::vector<ParameterSpec> parameters() const override { return {ParameterSpec::number("heaviest", kHeaviest)}; }
  void set_parameter(std::size_t, std::span<const double> value) override {
    if (!(value[0] >= kLightest)) throw std::invalid_argument("heaviest must be at least 0.5");
    heaviest_ = value[0];
  }

  Outcome step(const Action& action) override {
    random_.next_step();
    gust_ = strength_ * random_.normal();
    simulate(action.values, false);
    if (is_unstable()) return {0.0, true};  // a simulation that blew up ends the episode
    const double miss = qpos()[0] - 1.0;
    return {-miss * miss, false};
  }

  void observe(double* obs) const override {
    obs[0] = qpos()[0];
    obs[1] = qvel()[0];
  }

  void measure(double* values) const override {
    values[0] = drawn()[0];
    values[1] = is_unstable();
  }

  // The simulation saves itself and the drawn load; the randomness of steps is this task's own.
  std::size_t state_size() const override { return MujocoEnv::state_size() + StepRandom::kStateSize; }
  void save(double* state) const override { MujocoEnv::save(random_.save(state)); }
  void load(StateReader& state) override {
    random_.load(state);
    MujocoEnv::load(state);
  }

 protected:
  // Drawn at every reset, and applied again when a state is loaded.
  std::vector<ModelRange> model_ranges() const override { return {{"load", kLightest, heaviest_}}; }
  void apply_drawn(std::span<const double> drawn, const mjModel& original, mjModel& model) override {
    if (!(drawn[0] >= kLightest)) throw std::invalid_argument("load must be at least 0.5");
    const double factor = drawn[0] / original.body_mass[load_];
    model.body_mass[load_] = drawn[0];
    for (int axis = 0; axis < 3; ++axis) {
      model.body_inertia[3 * load_ + axis] = factor * original.body_inertia[3 * load_ + axis];
    }
  }

  void reset_model(Generator& random) override {
    random_ = StepRandom(random);
    set_state(init_qpos(), init_qvel());
  }

  void control(std::span<const float> action, mjData& data) override {
    const double wanted = kStiffness * (action[0] - data.qpos[0]) - kDamping * data.qvel[0];
    data.ctrl[0] = wanted + data.qfrc_bias[0];
    data.qfrc_applied[0] = gust_;
  }

 private:
  int load_;
  double strength_, heaviest_ = kHeaviest, gust_ = 0.0;
  StepRandom random_;
};

const Registered kCrane{"Crane-v0", make<Crane>, 50};

}  // namespace
