#include "core/errors.h"

#include <nanobind/nanobind.h>

namespace stoker::python {
namespace nb = nanobind;

void raise(const Status& status) {
  const nb::object make = nb::module_::import_("stoker.errors").attr("make");
  const std::string code(to_text(status.code()));
  const std::string text = status.to_string();
  const nb::object error =
      make(code.c_str(),
           nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace")));
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

}  // namespace stoker::python
