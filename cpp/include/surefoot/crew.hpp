// Threads that work through the same steps side by side, and wait for each other between them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>

namespace surefoot {

/// Tell the processor that this thread only waits.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// All threads of a crew call the same functions in the same order. Who waits looks out for a while, then sleeps:
/// waking up takes fifty times as long as a short step.
class Crew {
 public:
  explicit Crew(std::size_t threads) : threads_(static_cast<std::uint32_t>(threads)) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  std::size_t size() const { return threads_; }

  /// Call `work(task)` once for each task, on whichever thread is free; back when all are done. What one of them throws
  /// is thrown on all threads, with tasks left undone.
  template <class Work>
  void each(std::size_t tasks, const Work& work) {
    if (threads_ == 1) {
      for (std::size_t task = 0; task < tasks; ++task) work(task);
      return;
    }
    try {
      for (std::size_t task; (task = next_.fetch_add(1, std::memory_order_relaxed)) < tasks;) work(task);
    } catch (...) {
      fail();
    }
    wait();
    if (has_failed_) std::rethrow_exception(error_);
  }

  /// Call `work` on one thread; back when it is done.
  template <class Work>
  void once(const Work& work) {
    each(1, [&](std::size_t) { work(); });
  }

  /// Call `work` on the thread that says that it is the first.
  template <class Work>
  void on_first(bool is_first, const Work& work) {
    try {
      if (is_first) work();
    } catch (...) {
      if (threads_ == 1) throw;
      fail();
    }
    each(0, [](std::size_t) {});
  }

 private:
  void wait();
  void fail();

  const std::uint32_t threads_;
  std::exception_ptr error_;  // written before `has_failed_`, by one thread
  std::atomic<bool> has_failed_ = false;
  std::atomic_flag is_failing_;
  alignas(64) std::atomic<std::size_t> next_ = 0;
  alignas(64) std::atomic<std::uint32_t> arrived_ = 0;
  alignas(64) std::atomic<std::uint32_t> round_ = 0;
};

}  // namespace surefoot
