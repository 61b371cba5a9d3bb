#include "core/metrics.h"

#include <nanobind/stl/string.h>
#include <optional>
#include <string>
#include <vector>

#include "core/errors.h"
#include "stoker/metrics.h"

namespace stoker::python {

namespace {

namespace nb = nanobind;

// Of this process, opened by the first call. Never destroyed: metrics.py flushes it at exit, when a thread
// that still logs may run.
record::MetricLog& process_log() {
  static auto* log = new record::MetricLog(record::MetricLog::open());
  return *log;
}

// Clears the error of an int that does not fit: metrics.py words it.
std::optional<double> exact_number(PyObject* value) {
  if (PyFloat_CheckExact(value)) return PyFloat_AsDouble(value);
  if (!PyLong_CheckExact(value)) return std::nullopt;
  const double number = PyLong_AsDouble(value);
  if (PyErr_Occurred() == nullptr) return number;
  PyErr_Clear();
  return std::nullopt;
}

// The values, whose names are views of the keys. Nullopt if a key is no str, or a value no float or int.
std::optional<std::vector<record::MetricValue>> exact_values(const nb::dict& metrics) {
  std::vector<record::MetricValue> values;
  values.reserve(metrics.size());
  PyObject* key = nullptr;
  PyObject* value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(metrics.ptr(), &position, &key, &value) != 0) {
    Py_ssize_t size = 0;
    const auto number = exact_number(value);
    const char* name = number && PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, &size) : nullptr;
    if (name == nullptr) {
      PyErr_Clear();  // a lone surrogate
      return std::nullopt;
    }
    values.push_back({std::string_view(name, static_cast<std::size_t>(size)), *number});
  }
  return values;
}

// False, without an effect, for other types than dict of str to float or int, and a step that is no int:
// metrics.py converts them, so that no Python code runs in here.
bool log_metrics(const nb::object& metrics, const nb::object& step) {
  std::optional<std::int64_t> number;
  if (!step.is_none()) {
    if (!PyLong_CheckExact(step.ptr())) return false;
    number = PyLong_AsLongLong(step.ptr());
    if (PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return false;
    }
  }
  if (!PyDict_Check(metrics.ptr())) return false;
  const auto values = exact_values(nb::borrow<nb::dict>(metrics));
  if (!values) return false;
  if (const Status status = process_log().log(*values, number); !status.ok()) raise(status);
  return true;
}

bool log_summary(const nb::object& metrics) {
  if (!PyDict_Check(metrics.ptr())) return false;
  const auto values = exact_values(nb::borrow<nb::dict>(metrics));
  if (!values) return false;
  if (const Status status = process_log().summary(*values); !status.ok()) raise(status);
  return true;
}

// Waits without the GIL. "" or the problem.
std::string flush_metrics() {
  const nb::gil_scoped_release released;
  const Status status = process_log().flush();
  return status.ok() ? "" : std::string(status.message());
}

}  // namespace

void define_metrics(nb::module_& m) {
  m.def("log_metrics", &log_metrics, nb::arg("metrics"), nb::arg("step").none());
  m.def("log_summary", &log_summary, nb::arg("metrics"));
  m.def("flush_metrics", &flush_metrics);
  m.def("records_metrics", [] { return process_log().is_recording(); });
}

}  // namespace stoker::python
