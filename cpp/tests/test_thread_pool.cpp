#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

#include "check.hpp"
#include "surefoot/thread_pool.hpp"

namespace surefoot {
namespace {

/// How often each thread was called in one run.
std::vector<int> calls_of(ThreadPool& pool, std::size_t wanted) {
  std::vector<std::atomic<int>> calls(pool.size());
  pool.run(wanted, [&](std::size_t thread) { ++calls[thread]; });
  return {calls.begin(), calls.end()};
}

TEST(pool_calls_each_thread_once) {
  for (const std::size_t threads : {1, 2, 4, 7}) {
    ThreadPool pool(threads);
    CHECK_EQUAL(pool.size(), threads);
    CHECK_EQUAL(calls_of(pool, threads), std::vector<int>(threads, 1));
    CHECK_EQUAL(calls_of(pool, 100), std::vector<int>(threads, 1));
  }
}

TEST(pool_leaves_threads_asleep_that_are_not_wanted) {
  ThreadPool pool(4);
  for (int round = 0; round < 100; ++round) {
    CHECK_EQUAL(calls_of(pool, 0), (std::vector{0, 0, 0, 0}));
    CHECK_EQUAL(calls_of(pool, 1), (std::vector{1, 0, 0, 0}));
    CHECK_EQUAL(calls_of(pool, 2), (std::vector{1, 1, 0, 0}));
    CHECK_EQUAL(calls_of(pool, 3), (std::vector{1, 1, 1, 0}));
    CHECK_EQUAL(calls_of(pool, 4), (std::vector{1, 1, 1, 1}));
  }
}

TEST(pool_is_done_when_run_returns) {
  ThreadPool pool(4);
  std::vector<int> sums(4, 0);  // not atomic: what one round wrote, the next may read on any thread
  for (int round = 0; round < 1000; ++round) {
    std::vector<int> seen(4, 0);
    pool.run(4, [&](std::size_t thread) {
      seen[thread] = sums[(thread + 1) % 4];
      if (round % 2 == 1) return;
      seen[thread] = -1;
    });
    CHECK_EQUAL(seen, std::vector<int>(4, round % 2 == 1 ? round / 2 + 1 : -1));
    if (round % 2 == 0) pool.run(4, [&](std::size_t thread) { ++sums[thread]; });
  }
  CHECK_EQUAL(sums, std::vector<int>(4, 500));
}

TEST(pool_that_looks_out_for_work_finds_it_awake_or_asleep) {
  ThreadPool pool(3, std::chrono::microseconds(200));
  for (int round = 0; round < 300; ++round) {
    CHECK_EQUAL(calls_of(pool, 3), (std::vector{1, 1, 1}));
    if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(callers_of_a_pool_take_turns) {
  ThreadPool pool(2, std::chrono::microseconds(50));
  std::vector<std::thread> callers;
  int inside = 0;  // not atomic: only one may be there
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        pool.run(1, [&](std::size_t) { ++inside; });
        CHECK_EQUAL(calls_of(pool, 2), (std::vector{1, 1}));
      }
    });
  }
  for (auto& caller : callers) caller.join();
  CHECK_EQUAL(inside, 600);
}

TEST(pool_rethrows_and_works_on) {
  ThreadPool pool(3);
  for (std::size_t thrower = 0; thrower < 3; ++thrower) {
    std::atomic<int> finished = 0;
    CHECK_THROWS(pool.run(3,
                          [&](std::size_t thread) {
                            if (thread == thrower) throw std::out_of_range("row");
                            ++finished;
                          }),
                 std::out_of_range);
    CHECK_EQUAL(finished.load(), 2);  // the others were waited for
    CHECK_EQUAL(calls_of(pool, 3), (std::vector{1, 1, 1}));
  }
  CHECK_THROWS(pool.run(3, [](std::size_t) { throw std::out_of_range("all of them"); }), std::out_of_range);
  CHECK_THROWS(pool.run(1, [](std::size_t) { throw std::out_of_range("the caller alone"); }), std::out_of_range);
  CHECK_EQUAL(calls_of(pool, 3), (std::vector{1, 1, 1}));
}

TEST(pool_starts_and_stops_a_thousand_times) {
  for (int cycle = 0; cycle < 1000; ++cycle) {
    ThreadPool pool(3);
    if (cycle % 2 == 0) CHECK_EQUAL(calls_of(pool, 3), (std::vector{1, 1, 1}));  // else stopped before its first work
  }
}

}  // namespace
}  // namespace surefoot
