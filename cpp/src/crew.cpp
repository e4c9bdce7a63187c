#include "surefoot/crew.hpp"

namespace surefoot {

namespace {

/// Some twenty microseconds.
constexpr int kLooks = 600;

}  // namespace

void Crew::wait() {
  const std::uint32_t round = round_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
    next_.store(0, std::memory_order_relaxed);
    arrived_.store(0, std::memory_order_relaxed);
    round_.store(round + 1, std::memory_order_release);
    round_.notify_all();
    return;
  }
  for (int look = 0; look < kLooks; ++look) {
    if (round_.load(std::memory_order_acquire) != round) return;
    pause();
  }
  round_.wait(round, std::memory_order_acquire);
}

void Crew::fail() {
  if (is_failing_.test_and_set()) return;
  error_ = std::current_exception();
  has_failed_ = true;
}

}  // namespace surefoot
