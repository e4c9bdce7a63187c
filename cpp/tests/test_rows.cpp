#include <stdexcept>

#include "check.hpp"
#include "surefoot/rows.hpp"

namespace surefoot {
namespace {

using Observed = std::vector<double>;

constexpr Generator::Words kOne{1, 2, 3, 5}, kOther{7, 11, 13, 17};

Rows cart_poles(std::size_t count, const Endings& endings = {}) {
  return Rows("CartPole-v1", Options(), count, endings);
}

Observed observe(const Rows& rows, std::size_t row) {
  Observed obs(rows.obs_size());
  rows.observe(row, obs.data());
  return obs;
}

/// A push to the left or to the right.
RowStep push(Rows& rows, std::size_t row, std::int64_t choice) {
  RowStep step{};
  CHECK_EQUAL(rows.step(row, {{}, {&choice, 1}}, &step), step.ended());
  return step;
}

/// Alternating pushes hold the pole up for a while.
std::size_t steps_to_the_end(Rows& rows, std::size_t row, RowStep& last) {
  for (std::size_t count = 1;; ++count) {
    last = push(rows, row, static_cast<std::int64_t>(count % 2));
    if (last.ended()) return count;
  }
}

TEST(rows_know_their_sizes) {
  const Rows rows = cart_poles(3);
  CHECK_EQUAL(rows.size(), 3);
  CHECK_EQUAL(rows.obs_size(), 4);
  CHECK_EQUAL(rows.obs_parts().size(), 1);
  CHECK_EQUAL(rows.action_size(), 1);
  CHECK_EQUAL(rows.mask_size(), 0);
}

TEST(rows_start_from_their_own_generators) {
  Rows rows = cart_poles(3);
  rows.reseed(0, kOne);
  rows.reseed(1, kOther);
  rows.reseed(2, kOne);
  CHECK_EQUAL(observe(rows, 0), observe(rows, 2));
  CHECK(observe(rows, 0) != observe(rows, 1));
  const Observed first = observe(rows, 0);
  rows.reset(0);
  CHECK(observe(rows, 0) != first);  // the generator went on
  rows.reseed(0, kOne);
  CHECK_EQUAL(observe(rows, 0), first);
}

TEST(rows_end_by_themselves_without_a_limit) {
  Rows rows = cart_poles(1);
  rows.reseed(0, kOne);
  RowStep last{};
  steps_to_the_end(rows, 0, last);
  CHECK(last.terminated);
  CHECK(!last.truncated);
  CHECK_EQUAL(last.reward, 1.0);
}

TEST(rows_are_truncated_at_the_limit_of_every_episode) {
  Rows rows = cart_poles(1, {5, false});
  rows.reseed(0, kOne);
  RowStep last{};
  for (int episode = 0; episode < 3; ++episode) {
    CHECK_EQUAL(steps_to_the_end(rows, 0, last), 5);
    CHECK(last.truncated);
    CHECK(!last.terminated);
    rows.reset(0);
  }
}

TEST(rows_can_end_in_both_ways_at_once) {
  Rows unlimited = cart_poles(1);
  unlimited.reseed(0, kOne);
  RowStep last{};
  const std::size_t length = steps_to_the_end(unlimited, 0, last);
  Rows limited = cart_poles(1, {length, false});
  limited.reseed(0, kOne);
  CHECK_EQUAL(steps_to_the_end(limited, 0, last), length);
  CHECK(last.terminated);
  CHECK(last.truncated);
}

TEST(rows_can_report_truncation_as_termination) {
  Rows rows = cart_poles(1, {5, true});
  rows.reseed(0, kOne);
  RowStep last{};
  CHECK_EQUAL(steps_to_the_end(rows, 0, last), 5);
  CHECK(last.terminated);
  CHECK(!last.truncated);
}

TEST(rows_go_on_from_their_state) {
  const Endings endings{30, false};
  Rows rows = cart_poles(2, endings), copy = cart_poles(2, endings);
  rows.reseed(1, kOther);
  for (std::int64_t step = 0; step < 12; ++step) push(rows, 1, step % 2);
  std::vector<double> state(rows.state_size());
  rows.save(1, state.data());
  copy.load(0, state.data());  // into another row of other rows, whose own generator was never seeded
  CHECK_EQUAL(observe(copy, 0), observe(rows, 1));
  for (std::int64_t step = 0; step < 100; ++step) {
    const RowStep one = push(rows, 1, step % 2), other = push(copy, 0, step % 2);
    CHECK_EQUAL(one.terminated, other.terminated);
    CHECK_EQUAL(one.truncated, other.truncated);  // the steps before saving count
    if (one.ended()) {
      rows.reset(1);
      copy.reset(0);
    }
    CHECK_EQUAL(observe(copy, 0), observe(rows, 1));
  }
}

TEST(rows_save_words_that_are_no_numbers) {
  // A generator's words can have the bits of a signaling NaN, which must come back as they were.
  const Generator::Words odd{0x7ff0000000000001, 0xfff4000000000000, 0xffffffffffffffff, 0x7ff8dead0000beef};
  Rows rows = cart_poles(1);
  rows.reseed(0, odd);
  std::vector<double> state(rows.state_size());
  rows.save(0, state.data());
  Rows copy = cart_poles(1);
  copy.load(0, state.data());
  rows.reset(0);
  copy.reset(0);
  CHECK_EQUAL(observe(copy, 0), observe(rows, 0));
}

TEST(rows_of_unknown_envs_are_refused) { CHECK_THROWS(Rows("Nothing-v0", Options(), 1, {}), std::invalid_argument); }

}  // namespace
}  // namespace surefoot
