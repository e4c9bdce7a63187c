// Tensors by name, as Python passes them, and kernels by name.
#pragma once

#include <string>
#include <vector>

#include "arrays.hpp"
#include "surefoot/kernels.hpp"
#include "surefoot/tensor_reader.hpp"

namespace surefoot {

inline std::vector<NamedTensor> named_tensors(const nb::dict& tensors) {
  std::vector<NamedTensor> named;
  for (const auto& [key, value] : tensors) {
    const std::string name = nb::cast<std::string>(key);
    nb::ndarray<const float, nb::c_contig, nb::device::cpu> array;
    if (!nb::try_cast(value, array, false)) {
      throw nb::type_error(("tensor " + name + " must be a C-contiguous float32 array").c_str());
    }
    named.push_back({name, Shape(array.shape_ptr(), array.shape_ptr() + array.ndim()), array.data()});
  }
  return named;
}

/// The kernels of that name; the best ones if the name is empty.
inline const Kernels& kernels_of(const std::string& name) {
  if (name.empty()) return kernels();
  if (const Kernels* found = find_kernels(name)) return *found;
  throw nb::value_error(("instructions: this machine does not support '" + name + "'").c_str());
}

}  // namespace surefoot
