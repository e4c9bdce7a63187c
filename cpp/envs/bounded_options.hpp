// Options of an environment that must be in a range or one of several names.
#pragma once

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "surefoot/options.hpp"

namespace surefoot {

[[noreturn]] inline void refuse_option(const std::string& name, const std::string& must_be) {
  throw std::invalid_argument("option '" + name + "' must be " + must_be);
}

/// A number from `least` to `most`.
inline double bounded_number(const Options& options, const std::string& name, double otherwise, double least,
                             double most) {
  const double value = options.number(name, otherwise);
  if (value >= least && value <= most) return value;
  std::ostringstream range;
  range << "a number from " << least << " to " << most;
  refuse_option(name, range.str());
}

/// A whole number from `least` to `most`.
inline std::size_t bounded_count(const Options& options, const std::string& name, int otherwise, int least, int most) {
  const double value = options.number(name, otherwise);
  if (value >= least && value <= most && value == std::floor(value)) return static_cast<std::size_t>(value);
  std::ostringstream range;
  range << "a whole number from " << least << " to " << most << ", not " << value;
  refuse_option(name, range.str());
}

/// A number from 0 to 1.
inline double share(const Options& options, const std::string& name, double otherwise) {
  return bounded_number(options, name, otherwise, 0.0, 1.0);
}

/// One of the names; by default, the first.
inline std::string one_of(const Options& options, const std::string& name, const std::vector<std::string>& names) {
  const std::string value = options.text(name, names.front());
  if (std::find(names.begin(), names.end(), value) != names.end()) return value;
  std::string all;
  for (const auto& each : names) all += (all.empty() ? "" : each == names.back() ? " or " : ", ") + each;
  refuse_option(name, all + ", not '" + value + "'");
}

}  // namespace surefoot
