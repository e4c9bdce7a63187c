#include <algorithm>
#include <stdexcept>

#include "check.hpp"
#include "surefoot/env.hpp"
#include "surefoot/options.hpp"

namespace surefoot {
namespace {

using Given = std::map<std::string, Option>;
using Range = std::pair<double, double>;

TEST(options_give_what_was_given) {
  const Options options(Given{{"flag", true},
                              {"number", 0.25},
                              {"count", 5.0},
                              {"text", std::string("ant.xml")},
                              {"range", std::vector<double>{-1.0, 2.0}}});
  CHECK_EQUAL(options.flag("flag", false), true);
  CHECK_EQUAL(options.number("number", 1.0), 0.25);
  CHECK_EQUAL(options.count("count", 1), 5);
  CHECK_EQUAL(options.text("text", ""), "ant.xml");
  CHECK(options.range("range", {0.0, 0.0}) == Range(-1.0, 2.0));
  options.refuse_unknown("Ant-v5");
}

TEST(options_have_defaults) {
  const Options options;
  CHECK_EQUAL(options.flag("flag", true), true);
  CHECK_EQUAL(options.number("number", 1.5), 1.5);
  CHECK_EQUAL(options.count("count", 4), 4);
  CHECK_EQUAL(options.text("text", "x"), "x");
  CHECK(options.range("range", {0.0, 1.0}) == Range(0.0, 1.0));
  options.refuse_unknown("Ant-v5");
}

TEST(options_of_another_type_are_refused) {
  const Options options(Given{{"flag", true},
                              {"number", 0.5},
                              {"text", std::string("x")},
                              {"one", std::vector<double>{1.0}},
                              {"none", 0.0},
                              {"huge", 1e10}});
  CHECK_THROWS(options.flag("number", false), std::invalid_argument);
  CHECK_THROWS(options.number("flag", 0.0), std::invalid_argument);
  CHECK_THROWS(options.number("text", 0.0), std::invalid_argument);
  CHECK_THROWS(options.text("number", ""), std::invalid_argument);
  CHECK_THROWS(options.range("number", {}), std::invalid_argument);
  CHECK_THROWS(options.range("one", {}), std::invalid_argument);
  CHECK_THROWS(options.count("number", 1), std::invalid_argument);
  CHECK_THROWS(options.count("none", 1), std::invalid_argument);
  CHECK_THROWS(options.count("huge", 1), std::invalid_argument);
}

TEST(options_that_nobody_asked_for_are_named) {
  const Options options(Given{{"known", 1.0}, {"reset_nois", 0.1}});
  options.number("known", 0.0);
  CHECK_THROWS(options.refuse_unknown("Ant-v5"), std::invalid_argument);
  try {
    options.refuse_unknown("Ant-v5");
  } catch (const std::invalid_argument& error) {
    CHECK_EQUAL(std::string(error.what()), "Ant-v5 has no native option 'reset_nois'");
  }
}

TEST(envs_are_made_by_id) {
  CHECK_EQUAL(make_env("CartPole-v1", Options())->action_space().size(), 1);
  CHECK_THROWS(make_env("CartPole-v7", Options()), std::invalid_argument);
  CHECK_THROWS(make_env("CartPole-v1", Options(Given{{"gravity", 1.0}})), std::invalid_argument);
  const auto ids = env_ids();
  CHECK(std::is_sorted(ids.begin(), ids.end()));
  CHECK(std::find(ids.begin(), ids.end(), "CartPole-v1") != ids.end());
}

}  // namespace
}  // namespace surefoot
