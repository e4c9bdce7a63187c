// Reads the saved state of an env number by number, and checks each before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace surefoot {

/// Saved states come from files that may have been changed. A value that an env cannot have saved is rejected with a
/// std::invalid_argument that names it and its valid range.
class StateReader {
 public:
  explicit StateReader(std::span<const double> state) : rest_(state) {}

  /// The next number: finite, and from `low` to `high`.
  double number(const std::string& name, double low = kLowest, double high = kHighest);
  /// Fills `to` with the next numbers, each checked like `number`.
  void numbers(const std::string& name, std::span<double> to, double low = kLowest, double high = kHighest);
  /// A whole number from 0 to `most`.
  std::size_t count(const std::string& name, std::size_t most);
  bool flag(const std::string& name);
  /// All 64 bits of the next number.
  std::uint64_t word();

  bool is_done() const { return rest_.empty(); }

  /// Rejects a value with a message such as "cue is 0.5; it must be -1 or 1".
  [[noreturn]] static void refuse(const std::string& name, double value, const std::string& must_be);

 private:
  static constexpr double kLowest = std::numeric_limits<double>::lowest(), kHighest = -kLowest;

  static std::string range(double low, double high);
  double next();

  std::span<const double> rest_;
};

}  // namespace surefoot
