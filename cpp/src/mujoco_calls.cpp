#include "surefoot/mujoco_calls.hpp"

#include <algorithm>
#include <csetjmp>
#include <cstdio>

// A function that MuJoCo's own Python package and compiler use but its headers do not declare. The public handlers
// belong to the whole process, where other threads may have set theirs. The core only runs with the MuJoCo version it
// was built with.
extern "C" mjfLogHandler _mjPRIVATE_setTlsLogHandler(mjfLogHandler handler);

namespace surefoot {
namespace {

thread_local std::jmp_buf way_out;
thread_local char last_error[sizeof(mjLogMessage::subject)];

void ignore_warnings(const mjLogMessage* message) {
  if (message->level != mjLOG_ERROR) return;
  // No handler is active: MuJoCo ends the process, as by default.
  _mjPRIVATE_setTlsLogHandler(nullptr);
  mju_message(message);
}

void jump_on_errors(const mjLogMessage* message) {
  if (message->level != mjLOG_ERROR) return;
  std::snprintf(last_error, sizeof(last_error), "%s", message->subject);
  // MuJoCo is C: an exception cannot pass through it, and an error handler must not return.
  std::longjmp(way_out, 1);
}

}  // namespace

Quiet::Quiet() : previous_(_mjPRIVATE_setTlsLogHandler(&ignore_warnings)) {}

Quiet::~Quiet() { _mjPRIVATE_setTlsLogHandler(previous_); }

std::string error_of(void (*call)(const void*), const void* context) {
  const mjfLogHandler previous = _mjPRIVATE_setTlsLogHandler(&jump_on_errors);
  const bool gave_up = setjmp(way_out) != 0;
  if (!gave_up) {
    try {
      call(context);
    } catch (...) {  // an env's own code may throw
      _mjPRIVATE_setTlsLogHandler(previous);
      throw;
    }
  }
  _mjPRIVATE_setTlsLogHandler(previous);
  if (!gave_up) return {};
  std::string error = last_error;
  std::replace(error.begin(), error.end(), '\n', ' ');  // errors are one line
  return error;
}

}  // namespace surefoot
