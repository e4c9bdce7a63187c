// Random cases against the core, for some seconds: `core_fuzz --seconds 60 --seed 1`. A crash or a hang prints how to
// repeat exactly that case.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "chance.hpp"

// What sanitizers find ends in SIGABRT, which is handled here.
extern "C" const char* __asan_default_options() { return "abort_on_error=1"; }
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }

namespace surefoot::fuzz {
namespace {

constexpr unsigned kMostSeconds = 10;  // of a case

struct Arguments {
  std::uint64_t seed = 1, seconds = 10, number = 0;
  bool is_one = false;  // only case `number`
};

// Read by handlers of signals.
volatile std::uint64_t running_seed = 0, running_case = 0;
const char* program = "";

void tell_case(const char* what) {
  char text[512];
  const int length = std::snprintf(
      text, sizeof(text), "case %llu of seed %llu %s; repeat it with: %s --seed %llu --case %llu\n",
      static_cast<unsigned long long>(running_case), static_cast<unsigned long long>(running_seed), what, program,
      static_cast<unsigned long long>(running_seed), static_cast<unsigned long long>(running_case));
  if (write(STDERR_FILENO, text, static_cast<std::size_t>(length)) < 0) std::_Exit(1);
}

void on_signal(int number) {
  tell_case(number == SIGALRM ? "hung" : "crashed");
  std::_Exit(1);
}

void watch() {
#if !defined(__SANITIZE_ADDRESS__)  // which reports these itself before it aborts
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(number, &on_signal);
#endif
  for (const int number : {SIGABRT, SIGALRM}) signal(number, &on_signal);
}

/// Whether the core refused the case with a std::exception; anything else ends the program.
bool is_refused(const Arguments& arguments, std::uint64_t number) {
  running_seed = arguments.seed;
  running_case = number;
  alarm(kMostSeconds);
  Chance chance(arguments.seed, number);
  bool refused = false;
  try {
    constexpr void (*kCases[])(Chance&) = {&fuzz_env, &fuzz_env, &fuzz_rollout, &fuzz_policy, &fuzz_learning};
    chance.one_of(kCases)(chance);
  } catch (const std::exception& error) {
    refused = true;
    if (arguments.is_one) std::printf("refused: %s\n", error.what());
  } catch (const Finding& finding) {
    tell_case(finding.what);
    std::exit(1);
  }
  alarm(0);
  return refused;
}

int run(const Arguments& arguments) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(arguments.seconds);
  std::uint64_t count = 0, refused = 0;
  for (std::uint64_t number = arguments.number; count == 0 || (!arguments.is_one && Clock::now() < end); ++number) {
    refused += is_refused(arguments, number);
    ++count;
  }
  std::printf("%llu cases of seed %llu: %llu worked, %llu were refused with an error\n",
              static_cast<unsigned long long>(count), static_cast<unsigned long long>(arguments.seed),
              static_cast<unsigned long long>(count - refused), static_cast<unsigned long long>(refused));
  return 0;
}

Arguments read(int count, char** given) {
  Arguments arguments;
  for (int i = 1; i < count; i += 2) {
    const std::string name = given[i];
    char* end = nullptr;
    const std::uint64_t value = i + 1 < count ? std::strtoull(given[i + 1], &end, 10) : 0;
    const bool is_number = end != nullptr && *end == '\0' && end != given[i + 1];
    if (is_number && name == "--seed") {
      arguments.seed = value;
    } else if (is_number && name == "--seconds") {
      arguments.seconds = value;
    } else if (is_number && name == "--case") {
      arguments.number = value;
      arguments.is_one = true;
    } else {
      std::fprintf(stderr, "usage: %s [--seconds N] [--seed S] [--case C]\n", given[0]);
      std::exit(2);
    }
  }
  return arguments;
}

}  // namespace
}  // namespace surefoot::fuzz

int main(int count, char** given) {
  using namespace surefoot::fuzz;
  program = given[0];
  const Arguments arguments = read(count, given);
  watch();
  return run(arguments);
}
