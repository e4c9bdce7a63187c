// What a MuJoCo task can change: its control inside a step, its own model, its state.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "surefoot/mujoco_env.hpp"

namespace surefoot {
namespace {

constexpr int kSubsteps = 5;

/// A slider with two motors.
const Xml kSlider{R"(<mujoco><worldbody><body name="cart"><joint name="slide" type="slide" axis="1 0 0"/>
      <geom size="0.1" mass="1"/></body></worldbody>
      <actuator><motor joint="slide" ctrlrange="-2 3"/><motor joint="slide"/></actuator></mujoco>)"};

/// Holds the slider where the action says.
class Holder final : public Cloned<Holder, MujocoEnv> {
 public:
  Holder() : Cloned(Options(), kSlider, kSubsteps) {}

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
  Holder env;
  Generator random({1, 2, 3, 5});
  env.reset(random);
  CHECK_EQUAL(position(env), 0.0);  // where the model starts
  for (int step = 0; step < 300; ++step) act(env, 0.5f);
  CHECK_EQUAL(env.calls, 300 * kSubsteps);
  CHECK_NEAR(position(env), 0.5, 0.01);
}

TEST(what_a_task_throws_gets_out_of_the_simulation) {
  Holder env;
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
  const ActionSpace space = Holder().action_space();
  CHECK_EQUAL(space.size(), 2);
  CHECK_EQUAL(space.bounds.low[0], -2.0);
  CHECK_EQUAL(space.bounds.high[0], 3.0);
  CHECK_EQUAL(space.bounds.high[1], std::numeric_limits<double>::infinity());
}

TEST(a_model_is_shared_until_a_task_asks_for_its_own) {
  Holder first;
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

/// A ball that falls on a floor and can be pushed up.
std::string ball(double radius, const std::string& integrator = "Euler") {
  return "<mujoco><option integrator='" + integrator + "'/><worldbody><geom type='plane' size='1 1 1'/>" +
         "<body pos='0 0 1'><joint name='up' type='slide' axis='0 0 1'/><geom mass='1' size='" +
         std::to_string(radius) + "'/></body></worldbody><actuator><motor joint='up'/></actuator></mujoco>";
}

class Ball final : public Cloned<Ball, MujocoEnv> {
 public:
  explicit Ball(const std::string& xml, bool inside = true) : Cloned(Options(), Xml{xml}, 1) {
    if (inside) control_inside_substeps();
  }

  std::vector<ObsPart> obs_parts() const override { return {{"", {1}}}; }
  Outcome step(const Action& action) override {
    simulate(action.values, false);
    return {0.0, is_unstable()};
  }
  void observe(double* obs) const override { obs[0] = qpos()[0]; }

  double radius() const { return model().geom_size[3]; }
  int contacts() const { return data().ncon; }
  double most = 0.9;  // the largest radius
  double lag = 0.0;   // between where the ball is and where MuJoCo's derived position says that it is

 protected:
  std::vector<ModelRange> model_ranges() const override { return {{"radius", 0.1, most}}; }
  void apply_drawn(std::span<const double> drawn, const mjModel&, mjModel& model) override {
    if (drawn[0] < 0.1) throw std::invalid_argument("radius must be at least 0.1");
    model.geom_size[3] = drawn[0];
  }
  void control(std::span<const float> action, mjData& data) override {
    data.ctrl[0] = action[0];
    lag = std::max(lag, std::abs(data.xpos[5] - 1.0 - data.qpos[0]));
  }
};

Outcome push(Env& env, float force) { return env.step({{&force, 1}, {}}); }

TEST(control_inside_a_substep_sees_what_belongs_to_its_positions) {
  Generator random({1, 2, 3, 5});
  Ball inside(ball(0.1)), before(ball(0.1), false);
  for (Ball* env : {&inside, &before}) {
    env->reset(random);
    for (int step = 0; step < 5; ++step) push(*env, 20.0f);
  }
  CHECK_NEAR(inside.lag, 0.0, 1e-15);
  CHECK(before.lag > 1e-6);
  CHECK_THROWS(Ball(ball(0.1, "RK4")), std::invalid_argument);
  Ball(ball(0.1, "RK4"), false);
}

TEST(text_that_is_no_model_is_refused) {
  CHECK_THROWS(Ball("<mujoco><worldbody><joint/></worldbody></mujoco>"), std::invalid_argument);
  CHECK_THROWS(Ball("no XML"), std::invalid_argument);
}

TEST(a_simulation_that_diverges_says_so_until_the_next_step) {
  Generator random({1, 2, 3, 5});
  Ball env(ball(0.1));
  env.reset(random);
  CHECK(!push(env, 1.0f).terminated);
  CHECK(push(env, std::numeric_limits<float>::quiet_NaN()).terminated);
  CHECK(!push(env, 1.0f).terminated);
  CHECK(push(env, 1e30f).terminated);
  CHECK(std::isfinite(position(env)));
}

TEST(a_drawn_model_is_saved_and_equals_one_made_with_its_numbers) {
  Generator random({1, 2, 3, 5});
  Ball env(ball(0.3)), other(ball(0.3));
  env.reset(random);
  other.reset(random);
  CHECK(env.radius() != other.radius());
  std::vector<double> state(env.state_size());
  env.save(state.data());
  StateReader reader(state);
  other.load(reader);
  CHECK(reader.is_done());
  CHECK_EQUAL(env.radius(), other.radius());
  Ball fresh(ball(env.radius()), true);  // its drawn number is overwritten by the same one
  StateReader again(state);
  fresh.load(again);
  bool touched = false;
  for (int step = 0; step < 400;
       ++step) {  // falls until it lies on the floor, where MuJoCo's bounds decide on contacts
    for (Ball* one : {&env, &other, &fresh}) push(*one, 0.0f);
    touched = touched || env.contacts() > 0;
    CHECK_EQUAL(env.contacts(), fresh.contacts());
    CHECK_EQUAL(position(env), position(other));
  }
  CHECK(touched);
  CHECK_NEAR(position(env), env.radius() - 1.0, 0.02);
  for (const double radius : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    state[0] = radius;
    StateReader forged(state);
    CHECK_THROWS(other.load(forged), std::invalid_argument);
  }
}

TEST(a_drawn_model_is_loaded_after_its_range_has_moved) {
  Generator random({1, 2, 3, 5});
  Ball env(ball(0.3)), other(ball(0.3));
  env.reset(random);
  std::vector<double> state(env.state_size());
  env.save(state.data());
  other.most = 0.5 * (0.1 + env.radius());
  StateReader reader(state);
  other.load(reader);
  CHECK_EQUAL(env.radius(), other.radius());
}

/// Of four geoms in a body, the first has a size and a place; below, another body of two.
std::string cluster(const std::string& type, double size, double place) {
  const auto geom = [&](double radius, double at) {
    const std::string number = std::to_string(radius);
    return "<geom type='" + type + "' size='" + number + " " + number + " " + number + "' pos='" + std::to_string(at) +
           " 0 0'/>";
  };
  const std::string inertial = "<inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>";
  std::string bodies = "<body pos='0 0 1'><joint type='slide' axis='0 0 1'/>" + inertial + geom(size, place);
  for (const double at : {0.2, 0.4, 0.6}) bodies += geom(0.05, at);
  bodies += "</body><body pos='-1.5 0 1'><joint type='slide' axis='0 0 1'/>" + inertial;
  return "<mujoco><worldbody>" + bodies + geom(0.05, 0.0) + geom(0.05, 0.3) + "</body></worldbody></mujoco>";
}

/// Draws both, from ranges of one number each.
class Cluster final : public Cloned<Cluster, MujocoEnv> {
 public:
  Cluster(const std::string& xml, double size, double place)
      : Cloned(Options(), Xml{xml}, 1), size_(size), place_(place) {}

  std::vector<ObsPart> obs_parts() const override { return {{"", {1}}}; }
  Outcome step(const Action&) override { return {0.0, false}; }
  void observe(double* obs) const override { obs[0] = data().ncon; }

 protected:
  std::vector<ModelRange> model_ranges() const override { return {{"size", size_, size_}, {"place", place_, place_}}; }
  void apply_drawn(std::span<const double> drawn, const mjModel&, mjModel& model) override {
    std::fill_n(model.geom_size, 3, drawn[0]);
    model.geom_pos[0] = drawn[1];
  }

 private:
  double size_, place_;
};

TEST(geoms_that_were_resized_or_moved_touch_what_they_touch_in_a_fresh_model) {
  const double grown[] = {1.6, 0.0}, moved[] = {0.05, -1.45}, both[] = {0.2, -1.1}, same[] = {0.05, 0.0};
  for (const std::string type : {"sphere", "capsule", "box", "ellipsoid", "cylinder"}) {
    for (const auto* wanted : {grown, moved, both, same}) {
      Generator random({1, 2, 3, 5});
      Cluster drawn(cluster(type, 0.05, 0.0), wanted[0], wanted[1]);
      Cluster fresh(cluster(type, wanted[0], wanted[1]), wanted[0], wanted[1]);
      for (Cluster* env : {&drawn, &fresh}) env->reset(random);
      CHECK_EQUAL(position(drawn), position(fresh));
      CHECK_EQUAL(position(drawn) > 0, wanted != same);
    }
  }
}

}  // namespace
}  // namespace surefoot
