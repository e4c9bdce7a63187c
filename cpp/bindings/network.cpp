// Networks inside environments, for their Python twins.
#include "surefoot/network.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "activations.hpp"
#include "arrays.hpp"

namespace surefoot {
namespace {

void set(Network& network, nb::handle values) {
  network.set({checked<const double>(values, "values", {network.num_values()}), network.num_values()});
}

void run(const Network& network, std::size_t rows, nb::handle in, nb::handle out) {
  const float* const inputs = checked<const float>(in, "inputs", {rows, network.num_inputs()});
  network.run(rows, inputs, checked<float>(out, "outputs", {rows, network.num_outputs()}));
}

}  // namespace
}  // namespace surefoot

void bind_network(nanobind::module_& module) {
  namespace nb = nanobind;
  using surefoot::Network;
  nb::class_<Network>(module, "Network", "A stack of linear layers on the kernels.")
      .def(
          "__init__",
          [](Network* self, const std::vector<std::size_t>& sizes, const std::string& hidden,
             const std::string& output) {
            new (self) Network(sizes, surefoot::activation_of(hidden), surefoot::activation_of(output));
          },
          nb::arg("sizes"), nb::arg("hidden"), nb::arg("output"))
      .def_prop_ro("num_values", &Network::num_values)
      .def("set", &surefoot::set, nb::arg("values"))
      .def("run", &surefoot::run, nb::arg("rows"), nb::arg("inputs"), nb::arg("outputs"));
}
