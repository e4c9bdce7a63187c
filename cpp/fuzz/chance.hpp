// Where a case's choices come from: the same numbers for the same seed and case, on every machine.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "surefoot/random.hpp"

namespace surefoot::fuzz {

class Chance {
 public:
  Chance(std::uint64_t seed, std::uint64_t number) : generator_({seed, number, seed ^ number, 2 * number + 1}) {
    for (int i = 0; i < 8; ++i) generator_.next();  // neighbors begin alike
  }

  std::uint64_t word() { return generator_.next(); }
  /// From `low` to `high`, both included.
  std::size_t between(std::size_t low, std::size_t high) { return low + word() % (high - low + 1); }
  bool once_in(std::size_t times) { return word() % times == 0; }
  double uniform(double low, double high) { return generator_.uniform(low, high); }

  template <class Items>
  const auto& one_of(const Items& items) {
    return std::data(items)[word() % std::size(items)];
  }

  /// A number that nobody expects.
  double odd_number() {
    using Limits = std::numeric_limits<double>;
    static constexpr double kOdd[] = {Limits::quiet_NaN(),
                                      Limits::infinity(),
                                      -Limits::infinity(),
                                      1e300,
                                      -1e300,
                                      1e17,
                                      -1e17,
                                      1e9,
                                      -1e9,
                                      1e5,
                                      -5.0,
                                      -1.0,
                                      -0.0,
                                      0.0,
                                      0.5,
                                      1.0,
                                      2.0,
                                      3.0,
                                      64.0,
                                      1e-320,
                                      0x1p53,
                                      0x1p63,
                                      0x1p64,
                                      -0x1p63};
    return once_in(4) ? std::bit_cast<double>(word()) : one_of(kOdd);
  }

  /// Change some numbers: to odd ones, in a single bit, or by swapping two.
  void spoil(std::span<double> numbers) {
    if (numbers.empty()) return;
    for (std::size_t count = between(1, 3); count > 0; --count) {
      double& number = numbers[between(0, numbers.size() - 1)];
      switch (between(0, 3)) {
        case 0:
          number = std::bit_cast<double>(std::bit_cast<std::uint64_t>(number) ^ (std::uint64_t{1} << between(0, 63)));
          break;
        case 1:
          std::swap(number, numbers[between(0, numbers.size() - 1)]);
          break;
        default:
          number = odd_number();
      }
    }
  }

 private:
  Generator generator_;
};

/// Throws if what must hold does not: a finding, unlike what the core throws.
struct Finding {
  const char* what;
};

inline void require(bool holds, const char* what) {
  if (!holds) throw Finding{what};
}

/// The cases: each works or throws a std::exception.
void fuzz_env(Chance& chance);
void fuzz_rollout(Chance& chance);
void fuzz_policy(Chance& chance);
void fuzz_learning(Chance& chance);

}  // namespace surefoot::fuzz
