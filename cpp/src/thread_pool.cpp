#include "surefoot/thread_pool.hpp"

#include <algorithm>
#include <utility>

#include "surefoot/crew.hpp"

namespace surefoot {

namespace {

/// Number of spins between two looks at the clock.
constexpr int kPauses = 16;

}  // namespace

ThreadPool::ThreadPool(std::size_t threads, std::chrono::microseconds patience) : patience_(patience) {
  try {
    for (std::size_t thread = 1; thread < threads; ++thread) workers_.emplace_back([this, thread] { serve(thread); });
  } catch (...) {  // no more threads are available: stop those that run before their memory is freed
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

/// Returns when the condition holds or patience has run out.
template <class Condition>
void ThreadPool::look_out(const Condition& condition) const {
  if (patience_.count() == 0) return;
  const auto until = std::chrono::steady_clock::now() + patience_;
  while (!condition() && std::chrono::steady_clock::now() < until) {
    for (int i = 0; i < kPauses; ++i) pause();
  }
}

void ThreadPool::run(std::size_t wanted, const std::function<void(std::size_t)>& work) {
  const std::lock_guard turn(turn_);
  const std::size_t threads = std::min(wanted, size());
  if (threads == 0) return;
  if (threads > 1) {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    wanted_ = threads;
    running_ = threads - 1;
    ++round_;
    wake_.notify_all();
  } else {
    work_ = &work;
  }
  call(0);
  if (threads > 1) {
    look_out([this] { return running_ == 0; });
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return running_ == 0; });
  }
  work_ = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::serve(std::size_t thread) {
  std::size_t served = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    lock.unlock();
    look_out([&] { return closing_ || round_ != served; });
    lock.lock();
    wake_.wait(lock, [&] { return closing_ || round_ != served; });
    if (closing_) return;
    served = round_;
    if (thread >= wanted_) continue;
    lock.unlock();
    call(thread);
    lock.lock();
    if (--running_ == 0) done_.notify_one();
  }
}

void ThreadPool::call(std::size_t thread) noexcept {
  try {
    (*work_)(thread);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

}  // namespace surefoot
