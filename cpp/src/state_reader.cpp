#include "surefoot/state_reader.hpp"

#include <bit>
#include <cmath>
#include <sstream>
#include <stdexcept>

namespace surefoot {
namespace {

std::string to_text(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

}  // namespace

std::string StateReader::range(double low, double high) {
  return low > kLowest || high < kHighest ? "from " + to_text(low) + " to " + to_text(high) : "finite";
}

double StateReader::next() {
  if (rest_.empty()) throw std::logic_error("load reads more numbers than state_size says");
  const double first = rest_.front();
  rest_ = rest_.subspan(1);
  return first;
}

double StateReader::number(const std::string& name, double low, double high) {
  const double value = next();
  if (value >= low && value <= high) return value;  // false for NaN
  refuse(name, value, range(low, high));
}

void StateReader::numbers(const std::string& name, std::span<double> to, double low, double high) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = next();
    if (!(to[i] >= low && to[i] <= high)) refuse(name + "[" + std::to_string(i) + "]", to[i], range(low, high));
  }
}

std::size_t StateReader::count(const std::string& name, std::size_t most) {
  const double value = next();
  if (value >= 0 && value <= static_cast<double>(most) && value == std::floor(value)) {
    return static_cast<std::size_t>(value);
  }
  refuse(name, value, "a whole number from 0 to " + std::to_string(most));
}

bool StateReader::flag(const std::string& name) {
  const double value = next();
  if (value == 0 || value == 1) return value == 1;
  refuse(name, value, "0 or 1");
}

std::uint64_t StateReader::word() { return std::bit_cast<std::uint64_t>(next()); }

void StateReader::refuse(const std::string& name, double value, const std::string& must_be) {
  throw std::invalid_argument(name + " is " + to_text(value) + "; it must be " + must_be);
}

}  // namespace surefoot
