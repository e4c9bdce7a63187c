// Numbers among an environment's options that have to lie in a range.
#pragma once

#include <stdexcept>
#include <string>

#include "surefoot/options.hpp"

namespace surefoot {

/// A whole number from `least` to `most`.
inline std::size_t bounded_count(const Options& options, const std::string& name, int otherwise, int least, int most) {
  const int value = options.count(name, otherwise);
  if (value < least || value > most) {
    throw std::invalid_argument("option '" + name + "' must be a whole number from " + std::to_string(least) + " to " +
                                std::to_string(most) + ", not " + std::to_string(value));
  }
  return static_cast<std::size_t>(value);
}

/// A number from 0 to 1.
inline double share(const Options& options, const std::string& name, double otherwise) {
  const double value = options.number(name, otherwise);
  if (value >= 0.0 && value <= 1.0) return value;
  throw std::invalid_argument("option '" + name + "' must be a number from 0 to 1");
}

}  // namespace surefoot
