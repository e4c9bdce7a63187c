#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "check.hpp"
#include "surefoot/crew.hpp"
#include "surefoot/thread_pool.hpp"

namespace surefoot {
namespace {

/// Call `work(crew, thread)` on each thread of a crew.
template <class Work>
void on_all(std::size_t threads, const Work& work) {
  ThreadPool pool(threads);
  Crew crew(threads);
  pool.run(threads, [&](std::size_t thread) { work(crew, thread); });
}

TEST(crew_does_each_task_once_and_waits_for_all) {
  for (const std::size_t threads : {1, 2, 3, 7}) {
    std::vector<int> done(100, 0);  // not atomic: a task may be done by another thread in the next round
    on_all(threads, [&](Crew& crew, std::size_t) {
      for (int round = 0; round < 200; ++round) {
        crew.each(done.size(), [&](std::size_t task) { ++done[task]; });
        crew.each(0, [](std::size_t) {});
      }
    });
    CHECK_EQUAL(done, std::vector<int>(100, 200));
  }
}

TEST(crew_passes_results_from_step_to_step) {
  for (const std::size_t threads : {1, 2, 4}) {
    std::vector<int> numbers(64, 1), sums(64, 0);
    on_all(threads, [&](Crew& crew, std::size_t) {
      for (int round = 0; round < 100; ++round) {
        crew.each(numbers.size(), [&](std::size_t i) { sums[i] = numbers[i] + numbers[(i + 17) % 64]; });
        crew.each(numbers.size(), [&](std::size_t i) { numbers[i] = sums[63 - i] % 1000; });
      }
    });
    std::vector<int> expected(64, 1);
    for (int round = 0; round < 100; ++round) {
      for (int& number : expected) number = 2 * number % 1000;
    }
    CHECK_EQUAL(numbers, expected);
  }
}

TEST(crew_wakes_threads_that_fell_asleep) {
  std::atomic<int> done = 0;
  on_all(3, [&](Crew& crew, std::size_t) {
    for (int round = 0; round < 5; ++round) {
      crew.once([&] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); });
      crew.each(3, [&](std::size_t) { ++done; });
    }
  });
  CHECK_EQUAL(done.load(), 15);
}

TEST(crew_does_the_work_of_the_first_thread_there) {
  for (const std::size_t threads : {1, 3}) {
    std::vector<std::thread::id> seen;
    const std::thread::id caller = std::this_thread::get_id();
    on_all(threads, [&](Crew& crew, std::size_t thread) {
      for (int round = 0; round < 20; ++round) {
        crew.on_first(thread == 0, [&] { seen.push_back(std::this_thread::get_id()); });
      }
    });
    CHECK_EQUAL(seen.size(), 20);
    for (const std::thread::id id : seen) CHECK(id == caller);
  }
}

TEST(crew_throws_on_all_threads_what_one_of_them_threw) {
  for (const std::size_t threads : {1, 2, 5}) {
    std::atomic<int> went_on = 0;
    bool was_thrown = false;
    try {
      on_all(threads, [&](Crew& crew, std::size_t) {
        crew.each(10, [](std::size_t task) {
          if (task == 3) throw std::runtime_error("three");
        });
        ++went_on;
      });
    } catch (const std::runtime_error& error) {
      was_thrown = std::string(error.what()) == "three";
    }
    CHECK(was_thrown);
    CHECK_EQUAL(went_on.load(), 0);
  }
}

}  // namespace
}  // namespace surefoot
