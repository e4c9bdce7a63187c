// Threads that wait asleep until there is work; the caller works along.
#pragma once

#include <atomic>
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
  /// `threads` in all, the caller among them.
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const { return workers_.size() + 1; }

  /// Call `work(thread)` once on each of up to `wanted` threads and wait for all; rethrows what one of them threw.
  void run(std::size_t wanted, const std::function<void(std::size_t)>& work);

 private:
  void stop();
  void serve(std::size_t thread);
  void call(std::size_t thread) noexcept;

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t wanted_ = 0, running_ = 0, round_ = 0;
  bool closing_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> workers_;
};

}  // namespace surefoot
