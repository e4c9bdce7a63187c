#include "surefoot/crew.hpp"

#include <utility>

namespace surefoot {

namespace {

/// How often a thread looks before it sleeps; about twenty microseconds.
constexpr int kLooks = 600;
/// Sentinel instead of a number of tasks: no more tasks follow.
constexpr std::uint32_t kDismissed = UINT32_MAX;

/// Waits until a condition on the number holds.
template <class Condition>
void look_out(const std::atomic<std::uint32_t>& number, const Condition& holds) {
  std::uint32_t seen = number.load(std::memory_order_acquire);
  for (int look = 0; look < kLooks && !holds(seen); ++look) {
    pause();
    seen = number.load(std::memory_order_acquire);
  }
  while (!holds(seen)) {
    number.wait(seen, std::memory_order_acquire);
    seen = number.load(std::memory_order_acquire);
  }
}

}  // namespace

void Crew::give_out(std::uint32_t tasks) {
  undone_.store(tasks, std::memory_order_relaxed);
  left_.store(tasks, std::memory_order_release);
  left_.notify_all();
  while (take_one(0)) {
  }
  look_out(undone_, [](std::uint32_t undone) { return undone == 0; });
  if (error_ == nullptr) return;
  has_failed_.clear();
  std::rethrow_exception(std::exchange(error_, nullptr));
}

bool Crew::take_one(std::size_t thread) {
  std::uint32_t left = left_.load(std::memory_order_relaxed);
  do {
    if (left == 0 || left == kDismissed) return false;
  } while (!left_.compare_exchange_weak(left, left - 1, std::memory_order_acquire, std::memory_order_relaxed));
  try {
    call_(work_, left - 1, thread);
  } catch (...) {
    if (!has_failed_.test_and_set()) error_ = std::current_exception();
  }
  if (undone_.fetch_sub(1, std::memory_order_acq_rel) == 1) undone_.notify_one();
  return true;
}

void Crew::help(std::size_t thread) {
  do {
    look_out(left_, [](std::uint32_t left) { return left != 0; });
    while (take_one(thread)) {
    }
  } while (left_.load(std::memory_order_relaxed) != kDismissed);
}

void Crew::dismiss() {
  left_.store(kDismissed, std::memory_order_release);
  left_.notify_all();
}

}  // namespace surefoot
