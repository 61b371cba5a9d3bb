#include "core/metrics.h"

#include <algorithm>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <optional>
#include <span>
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

using ReadOnly = nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>;

template <typename Number>
std::span<const Number> elements_of(const ReadOnly& array) {
  return {static_cast<const Number*>(array.data()), array.size()};
}

// False for types other than float32 and float64: metrics.py converts them.
bool log_histogram(const std::string& name, const ReadOnly& values, std::optional<std::int64_t> step,
                   int bins) {
  Status status;
  if (values.dtype() == nb::dtype<double>()) {
    const nb::gil_scoped_release released;
    status = process_log().log_histogram(name, elements_of<double>(values), step, bins);
  } else if (values.dtype() == nb::dtype<float>()) {
    const nb::gil_scoped_release released;
    status = process_log().log_histogram(name, elements_of<float>(values), step, bins);
  } else {
    return false;
  }
  if (!status.ok()) raise(status);
  return true;
}

void log_image_file(const std::string& name, const nb::bytes& file, std::optional<std::int64_t> step) {
  const auto bytes = std::as_bytes(std::span(file.c_str(), file.size()));
  Status status;
  {
    const nb::gil_scoped_release released;
    status = process_log().log_image(name, bytes, step);
  }
  if (!status.ok()) raise(status);
}

// Fractions from 0 to 1; NaN is black.
template <typename Number>
std::vector<std::byte> bytes_of_fractions(std::span<const Number> fractions) {
  std::vector<std::byte> bytes;
  bytes.reserve(fractions.size());
  for (const Number fraction : fractions) {
    const Number inside = fraction > 0 ? std::min(fraction, Number(1)) : Number(0);
    bytes.push_back(static_cast<std::byte>(static_cast<int>(inside * 255 + Number(0.5))));
  }
  return bytes;
}

std::vector<std::byte> bytes_of_bools(std::span<const bool> bools) {
  std::vector<std::byte> bytes;
  bytes.reserve(bools.size());
  for (const bool is_set : bools) bytes.push_back(is_set ? std::byte{255} : std::byte{0});
  return bytes;
}

// Planes of channels to pixels.
std::vector<std::byte> interleaved(std::span<const std::byte> planes, std::size_t channels) {
  const std::size_t pixels = planes.size() / channels;
  std::vector<std::byte> bytes(planes.size());
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t i = 0; i < pixels; ++i) bytes[i * channels + channel] = planes[channel * pixels + i];
  }
  return bytes;
}

// `array`: height, width and channels, or channels, height and width where only that fits; without channels,
// grey. False for element types other than uint8, bool, float32 and float64.
bool log_pixels(const std::string& name, const ReadOnly& array, std::optional<std::int64_t> step) {
  std::vector<std::byte> made;
  std::span<const std::byte> bytes;
  if (array.dtype() == nb::dtype<std::uint8_t>())
    bytes = elements_of<std::byte>(array);
  else if (array.dtype() == nb::dtype<bool>())
    bytes = made = bytes_of_bools(elements_of<bool>(array));
  else if (array.dtype() == nb::dtype<float>())
    bytes = made = bytes_of_fractions(elements_of<float>(array));
  else if (array.dtype() == nb::dtype<double>())
    bytes = made = bytes_of_fractions(elements_of<double>(array));
  else
    return false;
  const auto is_channels = [](std::size_t size) { return size == 1 || size == 3 || size == 4; };
  const bool has_channels = array.ndim() == 3;
  const bool is_planar = has_channels && is_channels(array.shape(0)) && !is_channels(array.shape(2));
  if (array.ndim() < 2 || array.ndim() > 3 || (has_channels && !is_planar && !is_channels(array.shape(2)))) {
    raise(invalid(
        "image '{}': its shape must be (height, width), (height, width, channels) or (channels, height, "
        "width), with 1, 3 or 4 channels",
        name));
  }
  const std::size_t channels = !has_channels ? 1 : array.shape(is_planar ? 0 : 2);
  if (is_planar) bytes = made = interleaved(bytes, channels);
  const auto side = [&](std::size_t dimension) {
    return static_cast<std::uint32_t>(std::min<std::size_t>(array.shape(dimension), UINT32_MAX));
  };
  const record::PixelImage image{side(is_planar ? 2 : 1), side(is_planar ? 1 : 0),
                                 static_cast<std::uint32_t>(channels), bytes};
  Status status;
  {
    const nb::gil_scoped_release released;
    status = process_log().log_image(name, image, step);
  }
  if (!status.ok()) raise(status);
  return true;
}

// Returns at once.
void sync_metrics_later() { process_log().sync_later(); }

// Waits without the GIL. "" or the problem.
std::string flush_metrics() {
  const nb::gil_scoped_release released;
  Status status = process_log().flush();
  if (status.ok()) {
    status = process_log().sync();
    // A slow disk delays the program no longer: the values are with the kernel.
    if (status.code() == Code::timeout) status = {};
  }
  return status.ok() ? "" : std::string(status.message());
}

}  // namespace

void define_metrics(nb::module_& m) {
  m.def("log_metrics", &log_metrics, nb::arg("metrics"), nb::arg("step").none());
  m.def("log_summary", &log_summary, nb::arg("metrics"));
  m.def("log_histogram", &log_histogram, nb::arg("name"), nb::arg("values"), nb::arg("step").none(),
        nb::arg("bins"));
  m.def("log_image_file", &log_image_file, nb::arg("name"), nb::arg("file"), nb::arg("step").none());
  m.def("log_pixels", &log_pixels, nb::arg("name"), nb::arg("array"), nb::arg("step").none());
  m.def("flush_metrics", &flush_metrics);
  m.def("sync_metrics_later", &sync_metrics_later);
  m.def("records_metrics", [] { return process_log().is_recording(); });
}

}  // namespace stoker::python
