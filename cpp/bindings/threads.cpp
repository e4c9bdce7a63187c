#include "threads.hpp"

#include <unistd.h>

namespace nb = nanobind;

/// Longer than the time between two passes of a learner in PyTorch; then threads sleep.
constexpr std::chrono::microseconds kPatience{100};
constexpr std::size_t kMost = 65536;

namespace surefoot {

Threads::Threads(std::size_t count) : process_(getpid()) {
  if (count == 0 || count > kMost) throw nb::value_error("count must be from 1 to 65536");
  pool_ = std::make_unique<ThreadPool>(count, kPatience);
}

Threads::~Threads() {
  // A forked process does not have the threads and would wait for them forever.
  if (getpid() != process_) (void)pool_.release();
}

}  // namespace surefoot

void bind_threads(nb::module_& module) {
  using surefoot::Threads;
  nb::class_<Threads>(module, "Threads", "A thread pool for learning; its threads sleep shortly after the last pass.")
      .def(nb::init<std::size_t>(), nb::arg("count"), "Total number of threads, including the calling one.")
      .def_prop_ro("count", [](Threads& threads) { return threads.pool().size(); });
}
