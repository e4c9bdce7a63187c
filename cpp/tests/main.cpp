// Runs the tests whose names contain the first argument, or all.
#include <atomic>
#include <cstdio>

#include "check.hpp"

namespace surefoot::testing {
namespace {

std::atomic<std::size_t> failures = 0;  // checks may run on threads of a pool

/// Failed checks of one test, an escaped exception among them.
std::size_t run(const Test& test) {
  const std::size_t before = failures;
  try {
    test.body();
  } catch (const std::exception& error) {
    fail(test.name.c_str(), 0, std::string("threw ") + error.what());
  } catch (...) {
    fail(test.name.c_str(), 0, "threw something");
  }
  return failures - before;
}

int run_all(const std::string& filter) {
  std::size_t count = 0, failed = 0;
  for (const auto& test : tests()) {
    if (test.name.find(filter) == std::string::npos) continue;
    ++count;
    if (run(test) == 0) continue;
    ++failed;
    std::printf("FAILED %s\n", test.name.c_str());
  }
  std::printf("%zu of %zu C++ tests passed\n", count - failed, count);
  return failed > 0 || count == 0 ? 1 : 0;
}

}  // namespace

std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

void fail(const char* file, int line, const std::string& what) {
  ++failures;
  std::printf("%s:%d: %s\n", file, line, what.c_str());
}

}  // namespace surefoot::testing

int main(int count, char** arguments) { return surefoot::testing::run_all(count > 1 ? arguments[1] : ""); }
