// A leader thread that hands out many short tasks to helper threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>

namespace surefoot {

/// Tells the processor that this thread is only spinning.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// One thread leads and hands out tasks, the others run them. A waiting thread spins for a while, then sleeps: waking
/// up takes fifty times as long as a short task. The leader waits for tasks, not for threads, so a helper that loses
/// its core between two tasks does not delay it.
class Crew {
 public:
  explicit Crew(std::size_t threads) : threads_(threads) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  std::size_t size() const { return threads_; }

  /// Calls `work(task, thread)` once per task, returns when all are done, and rethrows the first exception. Only the
  /// leader, which is thread 0, may call this.
  template <class Work>
  void each(std::size_t tasks, const Work& work) {
    if (threads_ == 1 || tasks <= 1) {
      for (std::size_t task = 0; task < tasks; ++task) work(task, std::size_t{0});
      return;
    }
    work_ = &work;
    call_ = [](const void* one, std::size_t task, std::size_t thread) {
      (*static_cast<const Work*>(one))(task, thread);
    };
    give_out(static_cast<std::uint32_t>(tasks));
  }

  /// Runs tasks until the leader calls `dismiss`; `thread` is the number of the helper, from 1 on.
  void help(std::size_t thread);
  /// Lets all helpers return from `help`.
  void dismiss();

 private:
  void give_out(std::uint32_t tasks);
  bool take_one(std::size_t thread);

  const std::size_t threads_;
  const void* work_ = nullptr;
  void (*call_)(const void* work, std::size_t task, std::size_t thread) = nullptr;
  std::exception_ptr error_;
  std::atomic_flag has_failed_;
  alignas(64) std::atomic<std::uint32_t> left_ = 0;    // tasks that no thread has taken yet
  alignas(64) std::atomic<std::uint32_t> undone_ = 0;  // tasks that are not finished
};

}  // namespace surefoot
