// Whatever the number of threads, the engine gives the same bytes.
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "check.hpp"
#include "engine_arrays.hpp"
#include "small_policy.hpp"

namespace surefoot {
namespace {

constexpr std::size_t kThreads[] = {1, 2, 4, 7};
constexpr std::size_t kRows = 33, kSteps = 150;
constexpr std::size_t kLimit = 14;  // some poles fall before, some stand

Engine cart_poles(std::size_t threads, std::size_t rows = kRows) {
  return Engine(std::make_unique<Rows>("CartPole-v1", Options(), rows, Endings{kLimit, false}), threads);
}

void append(const StepArrays& step, std::vector<double>& trace) {
  for (const auto* numbers : {&step.obs[0], &step.final_obs[0], &step.reward}) {
    trace.insert(trace.end(), numbers->begin(), numbers->end());
  }
  for (const Flags* flags : {&step.terminated, &step.truncated}) {
    trace.insert(trace.end(), flags->data(), flags->data() + flags->size());
  }
}

/// [T, N, 1] pushes that depend on nothing but their place.
std::vector<std::int64_t> pushes(std::size_t rows) {
  std::vector<std::int64_t> choices(kSteps * rows);
  for (std::size_t i = 0; i < choices.size(); ++i) choices[i] = static_cast<std::int64_t>(i * i / 3 % 2);
  return choices;
}

struct Stepped {
  std::vector<double> trace, states;
  Flags ended{kSteps * kRows};
  std::size_t endings = 0;
};

Stepped stepped(std::size_t threads) {
  Engine engine = cart_poles(threads);
  StepArrays slot(engine.rows());
  Stepped result;
  engine.reset(row_seeds(kRows), slot.slot());
  append(slot, result.trace);
  const auto choices = pushes(kRows);
  for (std::size_t step = 0; step < kSteps; ++step) {
    engine.step({nullptr, choices.data() + step * kRows}, slot.slot());
    append(slot, result.trace);
    for (std::size_t row = 0; row < kRows; ++row) {
      const bool ended = slot.terminated[row] || slot.truncated[row];
      result.ended[step * kRows + row] = ended;
      result.endings += ended;
    }
  }
  result.states = states_of(engine.rows());
  return result;
}

TEST(engine_steps_alike_on_any_number_of_threads) {
  const Stepped reference = stepped(1);
  CHECK(reference.endings > kRows);
  for (const std::size_t threads : kThreads) {
    const Stepped other = stepped(threads);
    CHECK(same_bytes(other.trace, reference.trace));
    CHECK(same_bytes(other.states, reference.states));
  }
}

TEST(engine_steps_a_row_alike_among_few_and_many) {
  for (const std::size_t row : {0, 4}) {
    std::vector<double> traces[2];
    for (const std::size_t many : {0, 1}) {
      const std::size_t rows = many ? 64 : 5;
      Engine engine = cart_poles(3, rows);
      StepArrays slot(engine.rows());
      engine.reset(row_seeds(rows), slot.slot());
      for (std::size_t step = 0; step < 100; ++step) {
        const std::vector<std::int64_t> choices(rows, static_cast<std::int64_t>(step / 3 % 2));
        engine.step({nullptr, choices.data()}, slot.slot());
        traces[many].insert(traces[many].end(), &slot.obs[0][row * 4], &slot.obs[0][row * 4] + 4);
      }
    }
    CHECK(same_bytes(traces[0], traces[1]));
  }
}

TEST(engine_resets_in_the_same_step_and_keeps_the_last_observation) {
  Engine engine = cart_poles(2, 20);
  StepArrays slot(engine.rows());
  engine.reset(row_seeds(20), slot.slot());
  Rows apart("CartPole-v1", Options(), 1, Endings{kLimit, false});
  apart.reseed(0, row_seeds(20)[13]);
  for (std::int64_t step = 0, endings = 0; endings < 3; ++step) {
    const std::vector<std::int64_t> choices(20, step % 2);
    engine.step({nullptr, choices.data()}, slot.slot());
    const std::int64_t choice = step % 2;
    std::vector<double> obs(4);
    RowStep apart_step{};
    if (apart.step(0, {{}, {&choice, 1}}, &apart_step)) {
      ++endings;
      apart.observe(0, obs.data());
      CHECK_EQUAL(obs, std::vector<double>(&slot.final_obs[0][13 * 4], &slot.final_obs[0][13 * 4] + 4));
      apart.reset(0);
    }
    apart.observe(0, obs.data());
    CHECK_EQUAL(obs, std::vector<double>(&slot.obs[0][13 * 4], &slot.obs[0][13 * 4] + 4));
  }
}

TEST(engine_replays_what_it_stepped) {
  const Stepped reference = stepped(1);
  const auto choices = pushes(kRows);
  for (const std::size_t threads : kThreads) {
    Engine engine = cart_poles(threads);
    StepArrays slot(engine.rows());
    engine.reset(row_seeds(kRows), slot.slot());
    engine.replay(kSteps, {nullptr, choices.data()}, reference.ended.data());
    StepArrays expected(engine.rows()), replayed(engine.rows());
    Engine other = cart_poles(1);
    for (std::size_t row = 0; row < kRows; ++row) {
      other.rows().load(row, reference.states.data() + row * other.rows().state_size());
      other.rows().observe(row, expected.obs[0].data() + row * 4);
      engine.rows().observe(row, replayed.obs[0].data() + row * 4);
    }
    CHECK(same_bytes(replayed.obs, expected.obs));  // steps of episodes are not counted by bare dynamics
  }
}

std::vector<double> cheetahs_stepped(std::size_t threads) {
  const Options options({{"assets", std::string(MUJOCO_ASSETS)}});
  Engine engine(std::make_unique<Rows>("HalfCheetah-v5", options, 20, Endings{10, false}), threads);
  StepArrays slot(engine.rows());
  std::vector<double> trace;
  engine.reset(row_seeds(20), slot.slot());
  for (std::size_t step = 0; step < 25; ++step) {
    std::vector<float> values(20 * engine.rows().action_size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i + 3 * step));
    engine.step({values.data(), nullptr}, slot.slot());
    append(slot, trace);
  }
  const auto last = states_of(engine.rows());
  trace.insert(trace.end(), last.begin(), last.end());
  return trace;
}

TEST(engine_simulates_alike_on_any_number_of_threads) {
  const auto reference = cheetahs_stepped(1);
  for (const std::size_t threads : kThreads) CHECK(same_bytes(cheetahs_stepped(threads), reference));
}

/// Steps until a step that its generator draws, then gives NaN or throws; takes what CartPole takes.
class Breaks final : public Cloned<Breaks> {
 public:
  explicit Breaks(const Options& options) : throws_(options.flag("throws", false)) {}

  std::vector<ObsPart> obs_parts() const override { return {{"", {4}}}; }
  ActionSpace action_space() const override { return ActionSpace::discrete(2); }
  void reset(Generator& random) override { left_ = 20 + 100 * random.uniform(); }
  Outcome step(const Action&) override {
    left_ -= 1;
    if (left_ < 0 && throws_) throw std::runtime_error("broken");
    return {1.0, false};
  }
  void observe(double* obs) const override { std::fill_n(obs, 4, left_ < 0 ? std::nan("") : left_); }
  std::size_t state_size() const override { return 1; }
  void save(double* state) const override { *state = left_; }
  void load(StateReader& state) override { left_ = state.number("left"); }

 private:
  bool throws_;
  double left_ = 0;
};

const Registered kBreaks{"Breaks-v0", make<Breaks>};

Engine breaking(std::size_t threads, bool throws) {
  return Engine(std::make_unique<Rows>("Breaks-v0", Options({{"throws", throws}}), kRows, Endings{}), threads);
}

TEST(engine_rethrows_what_an_env_throws_while_others_step) {
  for (const std::size_t threads : kThreads) {
    Engine engine = breaking(threads, true);
    StepArrays slot(engine.rows());
    const std::vector<std::int64_t> choices(kRows, 0);
    for (int again = 0; again < 3; ++again) {
      engine.reset(row_seeds(kRows), slot.slot());
      CHECK_THROWS(
          [&] {
            for (int step = 0; step < 200; ++step) engine.step({nullptr, choices.data()}, slot.slot());
          }(),
          std::runtime_error);
    }
  }
}

Rollout collected(Engine& engine, std::size_t num_steps, const Policy& policy, std::size_t rollouts = 1) {
  StepArrays slot(engine.rows());
  engine.reset(row_seeds(engine.rows().size()), slot.slot());
  Rollout rollout(engine.rows(), policy, num_steps);
  rollout.begin(slot);
  for (std::uint64_t index = 0; index < rollouts; ++index) rollout.collect(engine, policy, index * num_steps);
  return rollout;
}

TEST(engine_collects_alike_on_any_number_of_threads) {
  const SmallPolicy policy;
  Engine one = cart_poles(1);
  const Rollout reference = collected(one, kSteps, policy.policy, 2);
  CHECK(reference.result.episodes.size() > kRows);
  CHECK(reference.result.out_of_bounds > 0);
  CHECK_EQUAL(reference.result.moments[0].count, static_cast<double>(kSteps * kRows));
  for (const std::size_t threads : kThreads) {
    Engine engine = cart_poles(threads);
    const Rollout other = collected(engine, kSteps, policy.policy, 2);
    CHECK(other.same_as(reference));
    CHECK(same_bytes(states_of(engine.rows()), states_of(one.rows())));
  }
}

TEST(engine_values_truncated_ends_only) {
  const SmallPolicy policy;
  Engine engine = cart_poles(2);
  const Rollout rollout = collected(engine, kSteps, policy.policy);
  std::size_t open = 0, closed = 0;
  for (std::size_t place = 0; place < kSteps * kRows; ++place) {
    const bool is_open = rollout.truncated[place] && !rollout.terminated[place];
    CHECK_EQUAL(rollout.final_value[place] != 0, is_open);
    CHECK_EQUAL(rollout.episode_start[place + kRows], rollout.truncated[place] || rollout.terminated[place]);
    open += is_open;
    closed += rollout.terminated[place];
  }
  CHECK(open > 0 && closed > 0);
}

TEST(engine_names_the_first_nan_on_any_number_of_threads) {
  const SmallPolicy policy;
  Engine one = breaking(1, false);
  const Rollout reference = collected(one, kSteps, policy.policy);
  CHECK(reference.result.problem.has_value());
  // The row whose generator drew the fewest steps.
  std::size_t first = 0;
  double fewest = 1e9;
  for (std::size_t row = 0; row < kRows; ++row) {
    Generator random(row_seeds(kRows)[row]);
    const double steps = std::floor(20 + 100 * random.uniform());
    if (steps < fewest) first = row;
    fewest = std::min(fewest, steps);
  }
  for (const std::size_t threads : kThreads) {
    Engine engine = breaking(threads, false);
    const auto problem = collected(engine, kSteps, policy.policy).result.problem;
    CHECK_EQUAL(problem->row, first);
    CHECK_EQUAL(problem->step, static_cast<std::size_t>(fewest));
    CHECK(problem->where == Where::kObservation);
  }
}

TEST(engine_rethrows_from_a_rollout_and_collects_again) {
  const SmallPolicy policy;
  for (const std::size_t threads : kThreads) {
    Engine engine = breaking(threads, true);
    CHECK_THROWS(collected(engine, kSteps, policy.policy), std::runtime_error);
    CHECK_EQUAL(collected(engine, 10, policy.policy).result.episodes.size(), 0);
  }
}

TEST(engine_starts_and_stops_a_thousand_times) {
  const SmallPolicy policy;
  for (int cycle = 0; cycle < 1000; ++cycle) {
    Engine engine = cart_poles(3, 20);
    if (cycle % 10 == 0) collected(engine, 4, policy.policy);
  }
}

}  // namespace
}  // namespace surefoot
