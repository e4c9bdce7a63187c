// Arrays that come in by name, checked for type, layout and shape before anything uses them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
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

/// The memory of an array of exactly this type and shape; anything else is an error that names the argument.
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

/// The same for an entry of a dict of arrays, by its key.
template <class Number>
Number* entry(const nb::dict& arrays, const char* name, const Shape& shape) {
  if (!arrays.contains(name)) throw nb::value_error((std::string(name) + " is missing").c_str());
  return checked<Number>(arrays[name], name, shape);
}

/// A numpy array that owns its numbers.
template <class Number>
nb::object owned(std::vector<Number> numbers, Shape shape) {
  auto* kept = new std::vector<Number>(std::move(numbers));
  const nb::capsule owner(kept, [](void* memory) noexcept { delete static_cast<std::vector<Number>*>(memory); });
  return nb::cast(nb::ndarray<nb::numpy, Number>(kept->data(), shape.size(), shape.data(), owner));
}

}  // namespace surefoot
