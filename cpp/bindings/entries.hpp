// The entries of a dict from Python: settings, arrays and other dicts.
#pragma once

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"

namespace surefoot {

/// Errors name the entry, after the path to the dict.
class Entries {
 public:
  explicit Entries(nb::dict plain, std::string path = "") : plain_(std::move(plain)), path_(std::move(path)) {}

  /// Whether there is such an entry that is not None.
  bool has(const char* name) const { return plain_.contains(name) && !plain_[name].is_none(); }

  template <class Value>
  Value read(const char* name) const {
    Value value{};
    if (!nb::try_cast(at(name), value)) throw nb::type_error((path_ + name + " has the wrong type").c_str());
    return value;
  }

  Entries inner(const char* name) const { return Entries(read<nb::dict>(name), path_ + name + "."); }

  std::vector<Entries> list(const char* name) const {
    std::vector<Entries> entries;
    for (const auto& one : read<std::vector<nb::dict>>(name)) {
      entries.emplace_back(one, path_ + name + "[" + std::to_string(entries.size()) + "].");
    }
    return entries;
  }

  /// An array of this shape; also one that is alone in a list.
  template <class Number>
  Number* array(const char* name, const Shape& shape) const {
    return checked<Number>(alone(name), path_ + name, shape);
  }
  template <class Number>
  Number* array_or_null(const char* name, const Shape& shape) const {
    return plain_.contains(name) ? array<Number>(name, shape) : nullptr;
  }

  /// An array of one dimension, of any length.
  template <class Number>
  std::span<Number> numbers(const char* name) const {
    nb::ndarray<Number, nb::ndim<1>, nb::c_contig, nb::device::cpu> array;
    if (!plain_.contains(name) || !nb::try_cast(alone(name), array, false)) {
      throw nb::type_error((must_be<Number>(path_ + name) + "one dimension").c_str());
    }
    return {array.data(), array.size()};
  }

  /// A list of arrays, one per size; see `checked_parts`.
  template <class Number>
  std::vector<Number*> parts(const char* name, const Shape& lead, const Shape& sizes) const {
    const bool is_there = plain_.contains(name);
    return checked_parts<Number>(is_there ? read<std::vector<nb::object>>(name) : std::vector<nb::object>(),
                                 path_ + name, lead, sizes);
  }

  const nb::dict& plain() const { return plain_; }
  const std::string& path() const { return path_; }

  /// An entry, out of its list if it is alone in one.
  nb::object alone(const char* name) const {
    nb::object found = at(name);
    return nb::isinstance<nb::list>(found) && nb::len(found) == 1 ? nb::object(found[0]) : found;
  }

 private:
  nb::object at(const char* name) const {
    if (!plain_.contains(name)) throw nb::value_error((path_ + name + " is missing").c_str());
    return plain_[name];
  }

  nb::dict plain_;
  std::string path_;
};

}  // namespace surefoot
