#include <algorithm>
#include <stdexcept>

#include "check.hpp"
#include "surefoot/env.hpp"

namespace surefoot {
namespace {

using Given = std::map<std::string, Option>;

Outcome choose(Env& env, std::int64_t choice) { return env.step({{}, {&choice, 1}}); }

TEST(t_maze_pays_for_the_arm_that_the_cue_named) {
  const auto env = make_env("TMaze-v0", Options(Given{{"length", 10.0}}));
  Generator random({1, 2, 3, 5});
  for (int episode = 0; episode < 20; ++episode) {
    double obs[2];
    env->reset(random);
    env->observe(obs);
    const std::int64_t named = obs[0] > 0 ? 1 : 2, taken = episode % 3;
    for (int step = 0; step < 10; ++step) {
      CHECK_EQUAL(obs[1], 0.0);
      CHECK_EQUAL(choose(*env, step % 3).terminated, false);
      env->observe(obs);
      CHECK_EQUAL(obs[0], 0.0);
    }
    CHECK_EQUAL(obs[1], 1.0);
    const Outcome last = choose(*env, taken);
    CHECK_EQUAL(last.reward, taken == named ? 1.0 : 0.0);
    CHECK_EQUAL(last.terminated, true);
  }
}

TEST(repeat_previous_pays_for_what_was_shown_before) {
  const Given given{{"symbols", 32.0}, {"delay", 64.0}, {"episode_steps", 66.0}};
  const auto env = make_env("RepeatPrevious-v0", Options(given));
  Generator random({1, 2, 3, 5});
  env->reset(random);
  std::vector<double> obs(33);
  std::vector<std::int64_t> shown;
  for (std::size_t step = 0; step < 66; ++step) {
    env->observe(obs.data());
    shown.push_back(std::find(obs.begin(), obs.end(), 1.0) - obs.begin());
    const Outcome outcome = choose(*env, step < 64 ? 0 : shown[step - 64]);
    CHECK_EQUAL(outcome.reward, step < 64 ? 0.0 : 0.5);
    CHECK_EQUAL(outcome.terminated, step == 65);
  }
  env->observe(obs.data());
  CHECK(obs == std::vector<double>(33, 0.0));
}

TEST(memory_tasks_refuse_options_out_of_range) {
  CHECK_THROWS(make_env("TMaze-v0", Options(Given{{"length", 101.0}})), std::invalid_argument);
  CHECK_THROWS(make_env("TMaze-v0", Options(Given{{"bump_penalty", 2.0}})), std::invalid_argument);
  CHECK_THROWS(make_env("RepeatPrevious-v0", Options(Given{{"delay", 64.0}})), std::invalid_argument);
}

}  // namespace
}  // namespace surefoot
