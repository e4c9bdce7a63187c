// The learner's threads from Python.
#include <nanobind/nanobind.h>

#include "surefoot/thread_pool.hpp"

namespace nb = nanobind;

/// Longer than what lies between two passes of a learner, shorter than anybody would notice.
constexpr std::chrono::microseconds kPatience{1000};

void bind_threads(nb::module_& module) {
  using surefoot::ThreadPool;
  nb::class_<ThreadPool>(module, "Threads",
                         "Threads that a learner's passes share; asleep a moment after the last one.")
      .def(
          "__init__",
          [](ThreadPool* pool, std::size_t count) {
            if (count == 0) throw nb::value_error("count must be at least 1");
            new (pool) ThreadPool(count, kPatience);
          },
          nb::arg("count"), "So many in all, whoever calls a pass among them.")
      .def_prop_ro("count", &ThreadPool::size);
}
