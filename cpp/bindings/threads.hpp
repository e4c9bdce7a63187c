// The thread pool of the learner, as a Python object.
#pragma once

#include <nanobind/nanobind.h>
#include <sys/types.h>

#include <memory>

#include "surefoot/thread_pool.hpp"

namespace surefoot {

class Threads {
 public:
  explicit Threads(std::size_t count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  ThreadPool& pool() { return *pool_; }

 private:
  pid_t process_;
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace surefoot
