#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "surefoot/crew.hpp"
#include "surefoot/thread_pool.hpp"

namespace surefoot {
namespace {

/// Lead a crew.
template <class Lead>
void with_crew(std::size_t threads, const Lead& lead) {
  ThreadPool pool(threads);
  Crew crew(threads);
  pool.run(threads, [&](std::size_t thread) {
    if (thread > 0) return crew.help(thread);
    const std::unique_ptr<Crew, void (*)(Crew*)> end(&crew, [](Crew* one) { one->dismiss(); });
    lead(crew);
  });
}

TEST(crew_does_each_task_once_and_waits_for_all) {
  for (const std::size_t threads : {1, 2, 3, 7}) {
    std::vector<int> done(100, 0);  // not atomic: a task may be done by another thread in the next round
    with_crew(threads, [&](Crew& crew) {
      for (int round = 0; round < 500; ++round) {
        crew.each(done.size(), [&](std::size_t task, std::size_t thread) {
          CHECK(thread < threads);
          ++done[task];
        });
        crew.each(round % 3, [&](std::size_t, std::size_t) {});
      }
    });
    CHECK_EQUAL(done, std::vector<int>(100, 500));
  }
}

TEST(crew_passes_results_from_step_to_step) {
  for (const std::size_t threads : {1, 2, 4}) {
    std::vector<int> numbers(64, 1), sums(64, 0);
    with_crew(threads, [&](Crew& crew) {
      for (int round = 0; round < 300; ++round) {
        crew.each(numbers.size(), [&](std::size_t i, std::size_t) { sums[i] = numbers[i] + numbers[(i + 17) % 64]; });
        crew.each(numbers.size(), [&](std::size_t i, std::size_t) { numbers[i] = sums[63 - i] % 1000; });
      }
    });
    std::vector<int> expected(64, 1);
    for (int round = 0; round < 300; ++round) {
      for (int& number : expected) number = 2 * number % 1000;
    }
    CHECK_EQUAL(numbers, expected);
  }
}

TEST(crew_wakes_threads_that_fell_asleep) {
  std::atomic<int> done = 0;
  with_crew(3, [&](Crew& crew) {
    for (int round = 0; round < 5; ++round) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      crew.each(3, [&](std::size_t, std::size_t) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ++done;
      });
    }
  });
  CHECK_EQUAL(done.load(), 15);
}

TEST(crew_throws_what_a_task_threw_and_goes_on) {
  for (const std::size_t threads : {1, 2, 5}) {
    with_crew(threads, [&](Crew& crew) {
      for (int round = 0; round < 20; ++round) {
        std::string thrown;
        try {
          crew.each(10, [](std::size_t task, std::size_t) {
            if (task == 3) throw std::runtime_error("three");
          });
        } catch (const std::runtime_error& error) {
          thrown = error.what();
        }
        CHECK_EQUAL(thrown, std::string("three"));
        int sum = 0;
        crew.each(1, [&](std::size_t, std::size_t) { ++sum; });
        CHECK_EQUAL(sum, 1);
      }
    });
  }
}

}  // namespace
}  // namespace surefoot
