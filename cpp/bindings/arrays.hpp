// Arrays from Python, checked for type, layout and shape before use, and arrays for Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
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

/// The start of a message about an array that is not of this type.
template <class Number>
std::string must_be(const std::string& name) {
  const char* type = std::is_same_v<std::remove_const_t<Number>, float>          ? "float32"
                     : std::is_same_v<std::remove_const_t<Number>, double>       ? "float64"
                     : std::is_same_v<std::remove_const_t<Number>, bool>         ? "bool"
                     : std::is_same_v<std::remove_const_t<Number>, std::int64_t> ? "int64"
                     : std::is_same_v<std::remove_const_t<Number>, std::uint8_t> ? "uint8"
                                                                                 : "uint64";
  return name + " must be a C-contiguous " + type + (std::is_const_v<Number> ? "" : " writable") + " array of ";
}

/// The data of an array of exactly this type and shape; any other array is an error that names the argument.
template <class Number>
Number* checked(nb::handle object, const std::string& name, const Shape& shape) {
  nb::ndarray<Number, nb::c_contig, nb::device::cpu> array;
  if (!nb::try_cast(object, array, false)) {
    throw nb::type_error((must_be<Number>(name) + "shape " + to_text(shape)).c_str());
  }
  const Shape given(array.shape_ptr(), array.shape_ptr() + array.ndim());
  if (given != shape) {
    throw nb::value_error((name + " must have shape " + to_text(shape) + ", not " + to_text(given)).c_str());
  }
  return array.data();
}

/// The data of one array per size; each has the shape `lead` followed by its size.
template <class Number>
std::vector<Number*> checked_parts(const std::vector<nb::object>& given, const std::string& name, const Shape& lead,
                                   const Shape& sizes) {
  if (given.size() != sizes.size()) {
    throw nb::value_error(
        (name + " must be " + std::to_string(sizes.size()) + " arrays, not " + std::to_string(given.size())).c_str());
  }
  std::vector<Number*> parts;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Shape shape = lead;
    shape.push_back(sizes[i]);
    parts.push_back(checked<Number>(given[i], sizes.size() == 1 ? name : name + "[" + std::to_string(i) + "]", shape));
  }
  return parts;
}

template <class Number>
using NumpyArray = nb::ndarray<nb::numpy, Number>;

/// Makes a numpy array that owns its data.
template <class Number>
NumpyArray<Number> owned(std::vector<Number> numbers, const Shape& shape) {
  auto* kept = new std::vector<Number>(std::move(numbers));
  const nb::capsule owner(kept, [](void* memory) noexcept { delete static_cast<std::vector<Number>*>(memory); });
  return NumpyArray<Number>(kept->data(), shape.size(), shape.data(), owner);
}
template <class Number>
NumpyArray<Number> owned(std::vector<Number> numbers) {
  const Shape shape{numbers.size()};
  return owned(std::move(numbers), shape);
}

}  // namespace surefoot
