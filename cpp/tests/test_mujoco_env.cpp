// What a MuJoCo task can change: its control inside a step, its own model, its state.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "check.hpp"
#include "surefoot/mujoco_env.hpp"

namespace surefoot {
namespace {

constexpr int kSubsteps = 5;

/// A slider with a motor, in a file that lives as long as this.
struct ModelFile {
  std::string path = std::filesystem::temp_directory_path() / ("slider" + std::to_string(getpid()) + ".xml");

  ModelFile() {
    std::ofstream(path) << R"(<mujoco><worldbody><body name="cart"><joint name="slide" type="slide" axis="1 0 0"/>
      <geom size="0.1" mass="1"/></body></worldbody>
      <actuator><motor joint="slide" ctrlrange="-2 3"/><motor joint="slide"/></actuator></mujoco>)";
  }
  ~ModelFile() { std::remove(path.c_str()); }
};

/// Holds the slider where the action says.
class Holder final : public Cloned<Holder, MujocoEnv> {
 public:
  explicit Holder(const std::string& path) : Cloned(Options(), path, kSubsteps) {}

  std::vector<ObsPart> obs_parts() const override { return {{"", {2}}}; }
  std::vector<ParameterSpec> parameters() const override { return {ParameterSpec::number("mass", 1.0)}; }
  void set_parameter(std::size_t, std::span<const double> value) override {
    own_model().body_mass[id_of(mjOBJ_BODY, "cart")] = value[0];
    refresh_model();
  }
  Outcome step(const Action& action) override {
    simulate(action.values);
    return {0.0, false};
  }
  void observe(double* obs) const override {
    obs[0] = qpos()[0];
    obs[1] = qvel()[0];
  }
  double mass() const { return model().body_mass[1]; }

  int calls = 0;
  bool throws = false;

 protected:
  void control(std::span<const float> action, mjData& data) override {
    if (throws) throw std::runtime_error("out of order");
    data.ctrl[0] = 10.0 * (action[0] - data.qpos[0]) - 6.0 * data.qvel[0];
    ++calls;
  }
};

void act(Env& env, float target) {
  const float action[] = {target, 0.0f};
  env.step({{action, 2}, {}});
}

double position(const Env& env) {
  double obs[2];
  env.observe(obs);
  return obs[0];
}

TEST(a_task_controls_every_substep) {
  const ModelFile file;
  Holder env(file.path);
  Generator random({1, 2, 3, 5});
  env.reset(random);
  CHECK_EQUAL(position(env), 0.0);  // where the model starts
  for (int step = 0; step < 300; ++step) act(env, 0.5f);
  CHECK_EQUAL(env.calls, 300 * kSubsteps);
  CHECK_NEAR(position(env), 0.5, 0.01);
}

TEST(what_a_task_throws_gets_out_of_the_simulation) {
  const ModelFile file;
  Holder env(file.path);
  Generator random({1, 2, 3, 5});
  env.reset(random);
  env.throws = true;
  CHECK_THROWS(act(env, 1.0f), std::runtime_error);
  env.throws = false;
  env.reset(random);
  act(env, 1.0f);
  CHECK(position(env) > 0.0);
}

TEST(actions_are_bounded_as_the_model_says) {
  const ModelFile file;
  const ActionSpace space = Holder(file.path).action_space();
  CHECK_EQUAL(space.size(), 2);
  CHECK_EQUAL(space.bounds.low[0], -2.0);
  CHECK_EQUAL(space.bounds.high[0], 3.0);
  CHECK_EQUAL(space.bounds.high[1], std::numeric_limits<double>::infinity());
}

TEST(a_model_is_shared_until_a_task_asks_for_its_own) {
  const ModelFile file;
  Holder first(file.path);
  const auto shared = first.clone();
  const double heavy = 5.0;
  first.set_parameter(0, {&heavy, 1});
  CHECK_EQUAL(first.mass(), 5.0);
  CHECK_EQUAL(static_cast<Holder&>(*shared).mass(), 1.0);
  const auto copy = first.clone();
  CHECK_EQUAL(static_cast<Holder&>(*copy).mass(), 5.0);
  const double light = 2.0;
  copy->set_parameter(0, {&light, 1});
  CHECK_EQUAL(first.mass(), 5.0);
  CHECK(first.footprint().filled > shared->footprint().filled);
  Generator one({1, 2, 3, 5}), other({1, 2, 3, 5});
  first.reset(one);
  shared->reset(other);
  act(first, 1.0f);
  act(*shared, 1.0f);
  CHECK(position(first) < position(*shared));
}

}  // namespace
}  // namespace surefoot
