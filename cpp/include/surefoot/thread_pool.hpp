// A thread pool in which the caller works, too.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace surefoot {

class ThreadPool {
 public:
  /// `threads` is the total, including the caller. A waiting thread spins for `patience` before it sleeps: waking up
  /// takes longer than many of the learner's tasks.
  explicit ThreadPool(std::size_t threads, std::chrono::microseconds patience = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const { return workers_.size() + 1; }

  /// Calls `work(thread)` once on each of up to `wanted` threads, waits for all, and rethrows the first exception.
  /// Concurrent callers take turns.
  void run(std::size_t wanted, const std::function<void(std::size_t)>& work);

 private:
  void stop();
  void serve(std::size_t thread);
  void call(std::size_t thread) noexcept;
  template <class Condition>
  void look_out(const Condition& condition) const;

  const std::chrono::microseconds patience_;
  std::mutex turn_, mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t wanted_ = 0;
  std::atomic<std::size_t> running_ = 0, round_ = 0;
  std::atomic<bool> closing_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> workers_;
};

}  // namespace surefoot
