// Threads that help with one piece of work after the other.
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

/// One thread leads, the others run tasks that it hands out. A waiting thread spins for a while, then sleeps: waking up
/// takes fifty times as long as a short task. The leader waits for tasks, not for threads, so a helper that loses its
/// core between two tasks does not delay it.
class Crew {
 public:
  explicit Crew(std::size_t threads) : threads_(threads) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  std::size_t size() const { return threads_; }

  /// Call `work(task, thread)` once for each task; back when all are done, with what one of them threw. The leader is
  /// thread 0; only it may call this.
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

  /// Help until the leader is done, as one of the threads from 1 on.
  void help(std::size_t thread);
  /// Let the helpers go.
  void dismiss();

 private:
  void give_out(std::uint32_t tasks);
  bool take_one(std::size_t thread);

  const std::size_t threads_;
  const void* work_ = nullptr;
  void (*call_)(const void* work, std::size_t task, std::size_t thread) = nullptr;
  std::exception_ptr error_;
  std::atomic_flag has_failed_;
  alignas(64) std::atomic<std::uint32_t> left_ = 0;    // tasks that no thread has taken
  alignas(64) std::atomic<std::uint32_t> undone_ = 0;  // tasks that are not done
};

}  // namespace surefoot
