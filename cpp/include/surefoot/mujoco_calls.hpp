// MuJoCo calls that cannot end the process. By default, its errors do, and its warnings go to the terminal and a file.
#pragma once

#include <mujoco/mujoco.h>

#include <string>

#include "surefoot/env.hpp"

namespace surefoot {

/// Suppresses MuJoCo warnings in this thread during its lifetime: they concern models of other people and actions out
/// of bounds.
class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  mjfLogHandler previous_;
};

/// Runs `call(context)` without warnings; returns MuJoCo's error message, or an empty string.
std::string error_of(void (*call)(const void*), const void* context);

/// The same for a lambda. MuJoCo errors leave it by longjmp, so nothing inside may need a destructor.
template <class Call>
std::string error_of(const Call& call) {
  return error_of([](const void* context) { (*static_cast<const Call*>(context))(); }, &call);
}

/// Runs `call`; throws EnvFailure if MuJoCo reports an error. The simulation must then be reset before it is used
/// again.
template <class Call>
void shielded(const Call& call) {
  if (const std::string error = error_of(call); !error.empty()) throw EnvFailure("MuJoCo gave up: " + error);
}

}  // namespace surefoot
