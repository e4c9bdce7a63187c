// Looks at Python objects without running Python code.
#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace {

bool have_values(const nb::list& dicts, const nb::list& values) {
  const Py_ssize_t count = PyList_GET_SIZE(values.ptr());
  Py_ssize_t found = 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(dicts.ptr()); ++i) {
    PyObject* const dict = PyList_GET_ITEM(dicts.ptr(), i);
    if (!PyDict_Check(dict)) throw nb::type_error("dicts must be a list of dicts");
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t place = 0; PyDict_Next(dict, &place, &key, &value) != 0; ++found) {
      if (found == count || PyList_GET_ITEM(values.ptr(), found) != value) return false;
    }
  }
  return found == count;
}

}  // namespace

void bind_objects(nb::module_& module) {
  module.def("have_values", &have_values, nb::arg("dicts"), nb::arg("values"),
             "Whether the dicts have exactly these objects as values, in order.");
}
