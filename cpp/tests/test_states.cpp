// States that no env can have saved: refused by name, and all envs keep what they have.
#include <cmath>
#include <limits>
#include <stdexcept>

#include "check.hpp"
#include "engine_arrays.hpp"
#include "surefoot/mujoco_env.hpp"

namespace surefoot {
namespace {

constexpr Generator::Words kWords{1, 2, 3, 5};
constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kCounted = 5;  // the generator's words and the steps of the episode

std::string refusal(Rows& rows, const std::vector<double>& states) {
  return testing::refusal_of([&] { rows.load_all(states.data()); });
}

TEST(a_reader_says_what_a_number_must_be) {
  const std::vector<double> numbers{0.5, 2.0, 3.0, 0.0, 1.0};
  StateReader reader(numbers);
  CHECK_EQUAL(reader.number("first"), 0.5);
  std::vector<double> two(2);
  reader.numbers("two", two, 2.0, 3.0);
  CHECK_EQUAL(two, (std::vector<double>{2.0, 3.0}));
  CHECK_EQUAL(reader.count("count", 0), 0);
  CHECK(reader.flag("flag"));
  CHECK(reader.is_done());
  CHECK_THROWS(reader.number("sixth"), std::logic_error);
  for (const double odd : {kNan, kInfinity, -kInfinity, -5.0, 0.5, 4.0, 1e300}) {
    CHECK_THROWS(StateReader({&odd, 1}).count("count", 3), std::invalid_argument);
    CHECK_THROWS(StateReader({&odd, 1}).flag("flag"), std::invalid_argument);
    CHECK_THROWS(StateReader({&odd, 1}).number("number", 1.0, 2.0), std::invalid_argument);
  }
}

TEST(a_refused_state_changes_no_env) {
  Rows rows("RepeatPrevious-v0", Options(), 3, {});
  for (std::size_t env = 0; env < 3; ++env) rows.reseed(env, kWords);
  const std::vector<double> before = states_of(rows);
  std::vector<double> forged = before;
  forged[kCounted] = 3.0 - forged[kCounted];  // taken, if the others were
  forged[2 * rows.state_size() + kCounted + 7] = 1e9;
  CHECK_EQUAL(refusal(rows, forged), "env 2: symbol is 1e+09; it must be a whole number from 0 to 3");
  CHECK_EQUAL(states_of(rows), before);
}

TEST(generators_have_odd_increments) {
  CHECK_THROWS(Generator({1, 2, 3, 4}), std::invalid_argument);
  Rows rows("CartPole-v1", Options(), 1, {});
  rows.reseed(0, kWords);
  std::vector<double> forged = states_of(rows);
  forged[3] = 0.0;
  CHECK_EQUAL(refusal(rows, forged), "env 0: the increment of the random generator must be odd");
}

/// Says that it has more numbers than it reads.
class Forgetful final : public Cloned<Forgetful> {
 public:
  explicit Forgetful(std::size_t size) : size_(size) {}
  std::vector<ObsPart> obs_parts() const override { return {{"", {1}}}; }
  ActionSpace action_space() const override { return ActionSpace::discrete(2); }
  std::vector<ParameterSpec> parameters() const override { return {ParameterSpec::number("speed", 1.0)}; }
  void set_parameter(std::size_t, std::span<const double> value) override {
    if (value[0] < 0) throw std::invalid_argument("the speed must be at least 0");
  }
  void reset(Generator&) override {}
  Outcome step(const Action&) override { return {0.0, false}; }
  void observe(double* obs) const override { *obs = 0.0; }
  std::size_t state_size() const override { return size_; }
  void save(double* state) const override { std::fill_n(state, size_, 0.0); }
  void load(StateReader& state) override {
    state.number("first");
    state.number("second");
  }

 private:
  std::size_t size_;
};

TEST(an_env_must_read_what_it_saves) {
  for (const std::size_t size : {1, 2, 3}) {
    Rows rows(std::make_unique<Forgetful>(size), 1, {});
    const std::vector<double> states = states_of(rows);
    if (size == 2) {
      CHECK_EQUAL(refusal(rows, states), "");
    } else {
      CHECK_THROWS(rows.load_all(states.data()), EnvFailure);
    }
  }
}

TEST(parameters_in_a_state_are_the_envs_to_refuse) {
  Rows rows(std::make_unique<Forgetful>(2), 2, {});
  std::vector<double> forged = states_of(rows);
  forged[rows.state_size() + kCounted] = -1.0;
  CHECK_EQUAL(refusal(rows, forged), "env 1: the speed must be at least 0");
  forged[rows.state_size() + kCounted] = kNan;
  CHECK_EQUAL(refusal(rows, forged), "env 1: the parameter 'speed' must not be NaN");
  CHECK_EQUAL(rows.parameter(1, 0)[0], 1.0);
}

/// A slider whose motor and sensor are delayed.
const Xml kDelayed{R"(<mujoco><worldbody><body><joint name="slide" type="slide" axis="1 0 0"/>
      <geom size="0.1" mass="1"/></body></worldbody>
      <actuator><motor joint="slide" nsample="3" delay="0.004"/></actuator>
      <sensor><jointpos joint="slide" nsample="4" delay="0.004"/></sensor></mujoco>)"};

class Delayed final : public Cloned<Delayed, MujocoEnv> {
 public:
  Delayed() : Cloned(Options(), kDelayed, 5) {}
  std::vector<ObsPart> obs_parts() const override { return {{"", {1}}}; }
  Outcome step(const Action& action) override {
    simulate(action.values);
    return {0.0, false};
  }
  void observe(double* obs) const override { *obs = qpos()[0]; }
};

TEST(a_simulation_writes_its_history_only_where_there_is_room) {
  Rows rows(std::make_unique<Delayed>(), 1, {});
  rows.reseed(0, kWords);
  const float push = 1.0f;
  RowStep step{};
  rows.step(0, {{&push, 1}, {}}, &step);
  const std::vector<double> saved = states_of(rows);
  CHECK_EQUAL(refusal(rows, saved), "");
  const std::size_t history = kCounted + 3;  // after time, qpos and qvel
  for (const std::size_t cursor : {history + 1, history + 8 + 1}) {
    for (const double odd : {-5.0, 4.0, 0.5, 1e8}) {
      std::vector<double> forged = saved;
      forged[cursor] = odd;
      CHECK(refusal(rows, forged).starts_with("env 0: cursor is "));
    }
  }
  std::vector<double> forged = saved;
  forged[kCounted + 1] = kInfinity;
  CHECK_EQUAL(refusal(rows, forged), "env 0: qpos[0] is inf; it must be finite");
}

TEST(actions_that_no_space_has_are_refused_before_an_env_steps) {
  Engine engine(std::make_unique<Rows>("Acrobot-v1", Options(), 2, Endings{}), 1);
  StepArrays arrays(engine.rows());
  const StepSlot slot = arrays.slot();
  engine.reset(std::vector<Generator::Words>(2, kWords), slot);
  const std::vector<double> before = states_of(engine.rows());
  for (const std::int64_t odd : {std::int64_t{3}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    const std::int64_t choices[] = {1, odd};
    CHECK_THROWS(engine.step({nullptr, choices}, slot), std::invalid_argument);
  }
  CHECK_EQUAL(states_of(engine.rows()), before);
  Engine pendulum(std::make_unique<Rows>("Pendulum-v1", Options(), 2, Endings{}), 1);
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const float values[] = {0.0f, odd};
    CHECK_THROWS(pendulum.step({values, nullptr}, slot), std::invalid_argument);
  }
}

}  // namespace
}  // namespace surefoot
