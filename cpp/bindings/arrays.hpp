// Named arrays from Python, checked for type, layout and shape before use.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace surefoot {

namespace nb = nanobind;

using Shape = std::vector<std::size_t>;

inline std::string to_text(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// The data of an array of exactly this type and shape; any other array is an error that names the argument.
template <class Number>
Number* checked(nb::handle object, const std::string& name, const Shape& shape) {
  using Array = nb::ndarray<Number, nb::c_contig, nb::device::cpu>;
  Array array;
  if (!nb::try_cast<Array>(object, array, false)) {
    const char* type = std::is_same_v<std::remove_const_t<Number>, float>          ? "float32"
                       : std::is_same_v<std::remove_const_t<Number>, double>       ? "float64"
                       : std::is_same_v<std::remove_const_t<Number>, bool>         ? "bool"
                       : std::is_same_v<std::remove_const_t<Number>, std::int64_t> ? "int64"
                       : std::is_same_v<std::remove_const_t<Number>, std::uint8_t> ? "uint8"
                                                                                   : "uint64";
    throw nb::type_error((name + " must be a C-contiguous " + type + (std::is_const_v<Number> ? "" : " writable") +
                          " array of shape " + to_text(shape))
                             .c_str());
  }
  const Shape given(array.shape_ptr(), array.shape_ptr() + array.ndim());
  if (given != shape) {
    throw nb::value_error((name + " must have shape " + to_text(shape) + ", not " + to_text(given)).c_str());
  }
  return array.data();
}

/// The data of an array in a dict, by its key.
template <class Number>
Number* entry(const nb::dict& arrays, const char* name, const Shape& shape) {
  if (!arrays.contains(name)) throw nb::value_error((std::string(name) + " is missing").c_str());
  return checked<Number>(arrays[name], name, shape);
}

/// The arrays of a rollout as passed in: one array per leaf for each field, by name.
using Fields = std::map<std::string, std::vector<nb::object>>;

/// The arrays of a field; each has the shape `lead` followed by one of the sizes.
template <class Number>
std::vector<Number*> leaves(const Fields& fields, const std::string& name, const Shape& lead, const Shape& sizes) {
  const auto found = fields.find(name);
  const std::size_t count = found == fields.end() ? 0 : found->second.size();
  if (count != sizes.size()) {
    throw nb::value_error(
        (name + " must be " + std::to_string(sizes.size()) + " arrays, not " + std::to_string(count)).c_str());
  }
  std::vector<Number*> arrays;
  for (std::size_t leaf = 0; leaf < count; ++leaf) {
    Shape shape = lead;
    shape.push_back(sizes[leaf]);
    const std::string place = count == 1 ? name : name + "[" + std::to_string(leaf) + "]";
    arrays.push_back(checked<Number>(found->second[leaf], place, shape));
  }
  return arrays;
}

/// The only array of a field.
template <class Number>
Number* leaf(const Fields& fields, const std::string& name, const Shape& lead, std::size_t size = 1) {
  if (!fields.contains(name)) throw nb::value_error((name + " is missing").c_str());
  return leaves<Number>(fields, name, lead, {size})[0];
}
template <class Number>
Number* leaf_or_null(const Fields& fields, const std::string& name, const Shape& lead, std::size_t size = 1) {
  return fields.contains(name) ? leaf<Number>(fields, name, lead, size) : nullptr;
}

/// Makes a numpy array that owns its data.
template <class Number>
nb::object owned(std::vector<Number> numbers, Shape shape) {
  auto* kept = new std::vector<Number>(std::move(numbers));
  const nb::capsule owner(kept, [](void* memory) noexcept { delete static_cast<std::vector<Number>*>(memory); });
  return nb::cast(nb::ndarray<nb::numpy, Number>(kept->data(), shape.size(), shape.data(), owner));
}

}  // namespace surefoot
