// Calls of MuJoCo that a process survives: by default its errors end it, and its warnings go to the terminal and a
// file.
#pragma once

#include <mujoco/mujoco.h>

#include <string>

#include "surefoot/env.hpp"

namespace surefoot {

/// While it lives, what MuJoCo warns of in this thread is not told: other people's models, and actions out of bounds.
class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  mjfLogHandler previous_;
};

/// Calls `call(context)`, quietly; what MuJoCo says if it gives up in the middle, else nothing.
std::string error_of(void (*call)(const void*), const void* context);

/// The same of a lambda. An error jumps out of it, so that nothing in it may need a destructor.
template <class Call>
std::string error_of(const Call& call) {
  return error_of([](const void* context) { (*static_cast<const Call*>(context))(); }, &call);
}

/// Throws EnvFailure if MuJoCo gives up: then its simulation has to be reset before it is used again.
template <class Call>
void shielded(const Call& call) {
  if (const std::string error = error_of(call); !error.empty()) throw EnvFailure("MuJoCo gave up: " + error);
}

}  // namespace surefoot
