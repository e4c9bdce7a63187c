// Handles signals while the core works without the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>

namespace surefoot {

/// Runs Python's signal handlers regularly; false after one of them raised.
class SignalCheck {
 public:
  bool operator()() {
    const auto now = std::chrono::steady_clock::now();
    if (now - checked_ < std::chrono::milliseconds(50)) return true;
    checked_ = now;
    const nanobind::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() == 0;
  }

 private:
  std::chrono::steady_clock::time_point checked_ = std::chrono::steady_clock::now();
};

}  // namespace surefoot
