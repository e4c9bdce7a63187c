// Plans of parts: what is missing, mistyped or unknown is named; and heads of choices by hand.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "made_up.hpp"
#include "surefoot/parts/critic.hpp"
#include "surefoot/parts/head.hpp"
#include "surefoot/parts/memory.hpp"

namespace surefoot {
namespace {

using Doubles = std::vector<double>;
using Texts = std::vector<std::string>;

template <class Role>
std::string refusal(const PartPlan& plan) {
  return testing::refusal_of([&] { make_part<Role>(plan, kernels()); });
}

PartPlan choices(const std::string& kind, Doubles sizes, Doubles start) {
  return {kind, {{"layer", "logits"}, {"sizes", std::move(sizes)}, {"start", std::move(start)}}, "plan.head"};
}

TEST(settings_of_parts_give_what_was_given) {
  const PartPlan plan("some", {{"flag", true},
                               {"number", 0.25},
                               {"count", 5.0},
                               {"text", "layer"},
                               {"numbers", Doubles{1, 2}},
                               {"texts", Texts{"a", "b"}},
                               {"nothing", Doubles{}}});
  CHECK(plan.flag("flag"));
  CHECK_EQUAL(plan.number("number"), 0.25);
  CHECK_EQUAL(plan.count("count"), 5);
  CHECK_EQUAL(plan.text("text"), "layer");
  CHECK_EQUAL(plan.floats("numbers"), (std::vector<float>{1, 2}));
  CHECK_EQUAL(plan.integers("numbers"), (std::vector<std::int64_t>{1, 2}));
  CHECK_EQUAL(plan.texts("texts"), (Texts{"a", "b"}));
  CHECK(plan.texts("nothing").empty());
  plan.refuse_unread();
}

TEST(settings_of_parts_are_refused_by_name) {
  const PartPlan plan("some", {{"flag", true}, {"half", 0.5}, {"halves", Doubles{0.5}}, {"zero", 0.0}}, "plan.head");
  CHECK_EQUAL(testing::refusal_of([&] { plan.text("layer"); }), "plan.head.layer is missing");
  CHECK_EQUAL(testing::refusal_of([&] { plan.number("flag"); }), "plan.head.flag must be a number");
  CHECK_EQUAL(testing::refusal_of([&] { plan.texts("halves"); }), "plan.head.halves must be strings");
  CHECK_EQUAL(testing::refusal_of([&] { plan.integers("halves"); }), "plan.head.halves must be whole numbers");
  CHECK_EQUAL(testing::refusal_of([&] { plan.count("half"); }), "plan.head.half must be a whole number of at least 1");
  CHECK_EQUAL(testing::refusal_of([&] { plan.count("zero"); }), "plan.head.zero must be a whole number of at least 1");
  CHECK_EQUAL(testing::refusal_of([&] { PartPlan("some", {{"typo", 1.0}}).refuse_unread(); }),
              "plan.typo is unknown to the kind 'some'");
}

TEST(parts_that_cannot_be_made_say_why) {
  CHECK_EQUAL(refusal<Head>({"cauchy"}), "plan.kind is 'cauchy', which the core does not know");
  CHECK_EQUAL(refusal<Memory>({"elman"}), "plan.kind is 'elman', which the core does not know");
  CHECK_EQUAL(refusal<Critic>({"scalar", {{"layer", "value"}}}), "plan.returns is missing");
  CHECK_EQUAL(refusal<Memory>({"none", {{"hidden", 4.0}}}), "plan.hidden is unknown to the kind 'none'");
  CHECK_EQUAL(refusal<Head>(choices("categorical", {2, 3}, {0, 0})), "plan.head.sizes must have one number");
  CHECK_EQUAL(refusal<Head>(choices("multi_discrete", {2, 0}, {0, 0})),
              "plan.head.sizes must have a positive number for each element");
  CHECK_EQUAL(refusal<Head>(choices("multi_discrete", {2, 3}, {0})),
              "plan.head.start must have as many numbers as sizes");
  CHECK_EQUAL(refusal<Head>({"beta", {{"low", Doubles{0}}, {"high", Doubles{}}, {"layer", "both"}}}),
              "plan.high must have as many numbers as low");
}

TEST(heads_of_choices_know_masks_and_where_the_env_counts_from) {
  const auto head = make_part<Head>(choices("multi_discrete", {2, 3}, {0, 10}), kernels());
  CHECK(head->is_discrete());
  CHECK_EQUAL(head->action_size(), 2);
  CHECK_EQUAL(head->mask_size(), 5);
  const bool both[] = {false, true, false, false, true}, only_first[] = {true, true, false, false, false};
  CHECK(head->leaves_a_choice(both));
  CHECK(!head->leaves_a_choice(only_first));
  std::vector<std::int64_t> choice{1, 2, 0, 0};
  head->choices_to_env(2, choice.data(), choice.data());
  CHECK_EQUAL(choice, (std::vector<std::int64_t>{1, 12, 0, 10}));
  const auto yes_no = make_part<Head>({"bernoulli", {{"layer", "logits"}, {"size", 3.0}}}, kernels());
  const bool none[] = {false, false, false};
  CHECK(yes_no->leaves_a_choice(none));
  CHECK_EQUAL(yes_no->mask_size(), 3);
}

}  // namespace
}  // namespace surefoot
