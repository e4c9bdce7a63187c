#include <stdexcept>

#include "check.hpp"
#include "surefoot/env.hpp"
#include "surefoot/rows.hpp"

namespace surefoot {
namespace {

using Given = std::map<std::string, Option>;
const std::vector<double> kReturns{0.5, -0.25, 0.125, 0.75};

Outcome hold(Env& env, float position) { return env.step({{&position, 1}, {}}); }

TEST(market_pays_the_return_after_the_action) {
  const Given given{{"returns", kReturns}, {"start", std::string("first")}, {"horizon", 3.0},
                    {"window", 1.0},       {"turnover_cost", 0.125},        {"exposure_cost", 0.5}};
  const auto env = make_env("Market-v0", Options(given));
  Generator random({1, 2, 3, 5});
  env->reset(random);
  double obs[4];
  env->observe(obs);
  CHECK(std::vector<double>(obs, obs + 4) == (std::vector<double>{0.5, 0.0, 0.0, 1.0}));
  CHECK_EQUAL(hold(*env, 1.0f).reward, -0.25 - 0.125 - 0.25);
  CHECK_EQUAL(hold(*env, 0.5f).reward, 0.0625 - 0.0625 - 0.0625);
  const Outcome last = hold(*env, 9.0f);  // clipped to 1
  CHECK_EQUAL(last.reward, 0.75 - 0.0625 - 0.25);
  CHECK_EQUAL(last.terminated, false);
  CHECK_EQUAL(last.truncated, true);
  env->observe(obs);
  CHECK(std::vector<double>(obs, obs + 4) == (std::vector<double>{0.75, 1.0, -0.25, 0.0}));
  CHECK_EQUAL(hold(*env, 1.0f).reward, 0.0);  // nothing is read beyond the last return
}

TEST(rows_take_an_env_s_own_truncation) {
  const Given given{{"horizon", 2.0}};
  const float position = 0.0f;
  for (const bool as_termination : {false, true}) {
    Rows rows("Market-v0", Options(given), 1, {0, as_termination});
    rows.reseed(0, {1, 2, 3, 5});
    RowStep step;
    CHECK_EQUAL(rows.step(0, {{&position, 1}, {}}, &step), false);
    CHECK_EQUAL(rows.step(0, {{&position, 1}, {}}, &step), true);
    CHECK_EQUAL(step.terminated, as_termination);
    CHECK_EQUAL(step.truncated, !as_termination);
  }
}

}  // namespace
}  // namespace surefoot
