// Envs with several agents: rows that are out of the game, metrics and parameters.
#include <cmath>
#include <stdexcept>

#include "check.hpp"
#include "engine_arrays.hpp"
#include "small_policy.hpp"

namespace surefoot {
namespace {

constexpr std::int64_t kRest = 0, kCharge = 1, kStrike = 2;
constexpr const char* kDuel = "Duel-v0";

struct Duels {
  Rows rows;
  RowStep steps[2] = {};

  explicit Duels(std::size_t num_envs = 1, const Endings& endings = {}) : rows(kDuel, Options(), num_envs, endings) {
    for (std::size_t env = 0; env < num_envs; ++env) rows.reseed(env, {env, 2, 3, 5});
  }

  bool act(std::int64_t left, std::int64_t right, std::size_t env = 0) {
    const std::int64_t choices[] = {left, right};
    return rows.step(env, {{}, {choices, 2}}, steps);
  }

  std::vector<double> observed(std::size_t row) const {
    std::vector<double> obs(rows.obs_size());
    rows.observe(row, obs.data());
    return obs;
  }

  /// The left one strikes until the right one is out.
  void finish_right() {
    for (int turn = 0; steps[1].valid && !steps[1].terminated; ++turn) {
      CHECK(!act(turn % 2 == 0 ? kCharge : kStrike, kRest));
      if (turn == 0) CHECK(steps[1].valid);
    }
  }
};

TEST(an_agent_that_terminates_is_out_of_the_game_while_others_play_on) {
  Duels duels;
  double weak[] = {0.0, 2.5};
  duels.rows.set_parameter(0, 1, weak);
  duels.rows.reset(0);
  CHECK_EQUAL(duels.rows.size(), 2);
  duels.steps[1] = {0, false, false, true};
  duels.finish_right();
  CHECK(duels.steps[0].valid && !duels.steps[0].ended());
  std::vector<double> last(3);
  duels.rows.observe_end(1, last.data());
  CHECK(last[1] > 0.0);  // the other's health
  CHECK_EQUAL(duels.observed(1), std::vector<double>(3, 0.0));
  bool allowed[3] = {};
  duels.rows.mask(1, allowed);
  CHECK(allowed[kRest] && allowed[kCharge] && allowed[kStrike]);
  std::size_t alone = 1;
  for (; !duels.act(kCharge, kStrike); ++alone) {
    CHECK(duels.steps[0].valid && !duels.steps[1].valid);
    CHECK_EQUAL(duels.steps[1].reward, 0.0);
  }
  CHECK(alone > 1);
  CHECK(duels.steps[0].terminated && !duels.steps[1].terminated);
  duels.rows.reset(0);
  CHECK(duels.observed(1)[0] > 0.0);
  duels.act(kRest, kRest);
  CHECK(duels.steps[0].valid && duels.steps[1].valid);
}

TEST(a_time_limit_truncates_the_agents_that_are_left) {
  Duels duels(1, {4, false});
  for (int step = 0; step < 3; ++step) CHECK(!duels.act(kRest, kRest));
  CHECK(duels.act(kRest, kRest));
  for (const RowStep& step : duels.steps) CHECK(step.truncated && !step.terminated && step.valid);
}

TEST(rows_with_agents_and_parameters_continue_from_their_state) {
  Duels duels, copy;
  const double damage = 3.0, handicap[] = {0.0, 2.0};
  duels.rows.set_parameter(0, 0, {&damage, 1});
  duels.rows.set_parameter(0, 1, handicap);
  duels.rows.reset(0);
  duels.steps[1] = {0, false, false, true};
  duels.finish_right();
  std::vector<double> state(duels.rows.state_size());
  duels.rows.save(0, state.data());
  copy.rows.load(0, state.data());
  CHECK_EQUAL(copy.rows.parameter(0, 0)[0], 3.0);
  CHECK_EQUAL(copy.rows.parameter(0, 1)[1], 2.0);
  for (int step = 0; step < 60; ++step) {
    CHECK_EQUAL(duels.act(step % 3, step % 2), copy.act(step % 3, step % 2));
    for (std::size_t row = 0; row < 2; ++row) {
      CHECK_EQUAL(duels.steps[row].valid, copy.steps[row].valid);
      CHECK_EQUAL(duels.steps[row].reward, copy.steps[row].reward);
      CHECK_EQUAL(duels.observed(row), copy.observed(row));
    }
    if (duels.steps[0].ended() || duels.steps[1].ended()) {
      duels.rows.reset(0);
      copy.rows.reset(0);
    }
  }
}

TEST(a_parameter_that_makes_no_sense_is_refused_and_forgotten) {
  Duels duels;
  const double negative = -1.0;
  CHECK_THROWS(duels.rows.set_parameter(0, 0, {&negative, 1}), std::invalid_argument);
  CHECK_EQUAL(duels.rows.parameter(0, 0)[0], 1.0);
}

/// A policy of Duel's shapes.
struct DuelPolicy {
  Policy policy;

  DuelPolicy() : policy(plan()) {
    MadeUp made_up;
    made_up.add_linear("trunk", 8, 3);
    made_up.add_linear("head", 3, 8);
    made_up.add_linear("value", 1, 8);
    policy.sync(made_up.named());
  }

  static PolicyPlan plan() {
    PolicyPlan plan = SmallPolicy::plan({});
    plan.obs[0].size = 3;
    plan.head = categorical("head", 3);
    return plan;
  }
};

/// A rollout of a policy; if `has_copy`, a copy of it acts in the place of every second agent.
Rollout duels(std::size_t threads, std::size_t num_envs, std::size_t steps, bool has_copy = false) {
  Engine engine(std::make_unique<Rows>(kDuel, Options(), num_envs, Endings{24, false}), threads);
  const DuelPolicy policy, copy;
  StepArrays first(engine.rows());
  engine.reset(row_seeds(num_envs), first.slot());
  Rollout rollout(engine.rows(), policy.policy, steps);
  rollout.begin(first);
  if (has_copy) {
    std::vector<std::int64_t> wanted;
    for (std::size_t row = 0; row < rollout.num_rows; ++row) wanted.push_back(row % 2);
    rollout.add({1, &copy.policy, {}, false}, wanted);
  }
  rollout.collect(engine, policy.policy, 0);
  return rollout;
}

TEST(rollouts_of_agents_are_alike_on_any_number_of_threads) {
  const std::size_t envs = 21, steps = 60, rows = 2 * envs;
  const Rollout reference = duels(1, envs, steps);
  std::size_t valid = 0, alone = 0;
  for (std::size_t place = 0; place < steps * rows; ++place) {
    valid += reference.valid[place];
    alone += !reference.valid[place];
    const bool ended = reference.terminated[place] || reference.truncated[place];
    CHECK_EQUAL(reference.episode_start[place + rows], ended || !reference.valid[place]);
    CHECK_EQUAL(std::isnan(reference.metrics[2 * place]), !reference.valid[place]);
  }
  CHECK(alone > 0);
  CHECK_EQUAL(reference.result.num_steps, valid);
  CHECK_EQUAL(reference.result.moments[0].count, static_cast<double>(valid));
  for (const std::size_t threads : {2, 4, 7}) {
    CHECK(duels(threads, envs, steps).same_as(reference));
  }
}

TEST(a_copy_of_a_policy_acts_as_the_policy_does) {
  const std::size_t envs = 21, steps = 60, rows = 2 * envs;
  const Rollout alone = duels(1, envs, steps);
  for (const std::size_t threads : {1, 2, 4}) {
    const Rollout together = duels(threads, envs, steps, true);
    CHECK(same_bytes(together.obs, alone.obs) && same_bytes(together.reward, alone.reward));
    CHECK(same_bytes(together.choice, alone.choice) && together.episode_start == alone.episode_start);
    CHECK_EQUAL(together.acting, together.wanted);
    std::size_t valid = 0;
    for (std::size_t place = 0; place < steps * rows; ++place) {
      const bool is_own = place % 2 == 0;
      valid += together.valid[place];
      CHECK_EQUAL(together.valid[place], is_own && alone.valid[place]);
      CHECK_EQUAL(together.actor[place], alone.valid[place] ? (is_own ? 0 : 1) : -1);
      CHECK_EQUAL(together.value[place], is_own ? alone.value[place] : 0.0f);
      CHECK_EQUAL(together.log_prob[place], is_own ? alone.log_prob[place] : 0.0f);
    }
    CHECK_EQUAL(together.result.num_steps, valid);
    for (std::size_t row = 0; row < rows; ++row) {
      CHECK_EQUAL(together.last_value[row], row % 2 == 0 ? alone.last_value[row] : 0.0f);
    }
  }
}

TEST(agents_that_do_not_take_part_wait_for_the_next_reset) {
  Duels duels;
  const double none[] = {0.0, 0.0}, all[] = {0.0, 9.0}, both[] = {9.0, 9.0};
  duels.rows.set_parameter(0, 1, all);
  duels.rows.reset(0);
  CHECK_EQUAL(duels.observed(1), std::vector<double>(3, 0.0));
  CHECK(!duels.act(kRest, kStrike));
  CHECK(duels.steps[0].valid && !duels.steps[1].valid && !duels.steps[1].ended());
  std::vector<double> state(duels.rows.state_size());
  duels.rows.save(0, state.data());
  Duels copy;
  copy.rows.load(0, state.data());
  CHECK(!copy.act(kRest, kStrike) && !copy.steps[1].valid);
  duels.rows.set_parameter(0, 1, none);
  duels.rows.reset(0);
  duels.act(kRest, kRest);
  CHECK(duels.steps[0].valid && duels.steps[1].valid);
  duels.rows.set_parameter(0, 1, both);
  CHECK_THROWS(duels.rows.reset(0), EnvFailure);
}

}  // namespace
}  // namespace surefoot
