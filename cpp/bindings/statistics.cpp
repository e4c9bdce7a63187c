// Statistics and checksums from Python, of arrays and bytes.
#include "surefoot/statistics.hpp"

#include <nanobind/stl/pair.h>

#include "arrays.hpp"
#include "surefoot/crc32c.hpp"

namespace nb = nanobind;

namespace surefoot {
namespace {

using Floats = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

void standardize_array(const Floats& numbers, const nb::object& valid, const nb::object& standardized) {
  const Shape shape(numbers.shape_ptr(), numbers.shape_ptr() + numbers.ndim());
  standardize(numbers.size(), numbers.data(), checked<const bool>(valid, "valid", shape),
              checked<float>(standardized, "standardized", shape));
}

std::pair<double, double> fit_of_arrays(const Floats& values, const nb::object& returns) {
  const Shape shape(values.shape_ptr(), values.shape_ptr() + values.ndim());
  const Fit fit = fit_of(values.size(), values.data(), checked<const float>(returns, "returns", shape));
  return {fit.explained_variance, fit.error};
}

std::uint32_t crc32c_of(const nb::bytes& bytes) {
  return crc32c(static_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace
}  // namespace surefoot

void bind_statistics(nb::module_& module) {
  module.def("standardize", &surefoot::standardize_array, nb::arg("numbers"), nb::arg("valid"), nb::arg("standardized"),
             "Write the numbers with zero mean and unit standard deviation over those that are valid.");
  module.def("fit", &surefoot::fit_of_arrays, nb::arg("values"), nb::arg("returns"),
             "Explained variance of values, and their error relative to the root mean square of the returns.");
  module.def("crc32c", &surefoot::crc32c_of, nb::arg("bytes"), "The CRC-32C checksum.");
}
