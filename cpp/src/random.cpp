#include "surefoot/random.hpp"

#include <numpy/random/distributions.h>

#include <bit>
#include <stdexcept>

namespace surefoot {
namespace {

constexpr unsigned __int128 kMultiplier =
    (static_cast<unsigned __int128>(2549297995355413924ULL) << 64) | 4865540595714422341ULL;

unsigned __int128 join(std::uint64_t high, std::uint64_t low) {
  return (static_cast<unsigned __int128>(high) << 64) | low;
}

std::uint64_t next_word(void* generator) { return static_cast<Generator*>(generator)->next(); }
double next_uniform(void* generator) { return static_cast<Generator*>(generator)->uniform(); }

}  // namespace

Generator::Generator(const Words& words) : state_(join(words[0], words[1])), increment_(join(words[2], words[3])) {
  // With an even increment, the generator can repeat one number forever, and a rejection loop would not end.
  if (words[3] % 2 == 0) throw std::invalid_argument("the increment of the random generator must be odd");
}

Generator::Words Generator::words() const {
  return {static_cast<std::uint64_t>(state_ >> 64), static_cast<std::uint64_t>(state_),
          static_cast<std::uint64_t>(increment_ >> 64), static_cast<std::uint64_t>(increment_)};
}

// PCG XSL RR 128/64 (O'Neill 2014).
std::uint64_t Generator::next() {
  state_ = state_ * kMultiplier + increment_;
  const auto high = static_cast<std::uint64_t>(state_ >> 64);
  return std::rotr(high ^ static_cast<std::uint64_t>(state_), static_cast<int>(high >> 58));
}

double Generator::uniform() { return static_cast<double>(next() >> 11) * (1.0 / 9007199254740992.0); }

double Generator::uniform(double low, double high) { return low + (high - low) * uniform(); }

double Generator::normal() {
  bitgen_t bits{this, next_word, nullptr, next_uniform, next_word};
  return random_standard_normal(&bits);
}

double Generator::student_t(double degrees) {
  bitgen_t bits{this, next_word, nullptr, next_uniform, next_word};
  return random_standard_t(&bits, degrees);
}

}  // namespace surefoot
