#include "core/batch.h"

namespace stoker::python {
namespace nb = nanobind;
namespace {

template <typename T>
Array array(T* data, std::size_t size, nb::handle owner) {
  return Array(data, {size}, owner, {}, nb::dtype<T>());
}

nb::dlpack::dtype dtype_of(DType type) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(type));
  const auto code = type == DType::u8     ? nb::dlpack::dtype_code::UInt
                    : type == DType::bf16 ? nb::dlpack::dtype_code::Bfloat
                                          : nb::dlpack::dtype_code::Float;
  return {static_cast<std::uint8_t>(code), bits, 1};
}

}  // namespace

Array Batch::image(nb::handle self) {
  const MutableTensorView image = batch_.image();
  const std::vector<std::size_t> shape(image.shape.begin(), image.shape.end());
  return Array(image.data.data(), shape.size(), shape.data(), self, nullptr, dtype_of(image.dtype));
}

Array Batch::bytes(nb::handle self) {
  const std::span<std::byte> bytes = batch_.bytes();
  return array(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size(), self);
}

Array Batch::offsets(nb::handle self) {
  return array(batch_.offsets().data(), batch_.offsets().size(), self);
}

Array Batch::label(nb::handle self) { return array(batch_.labels().data(), count(), self); }

Array Batch::index(nb::handle self) {
  // Sample numbers are below 2^32; PyTorch knows no arithmetic on unsigned 64-bit integers.
  return array(reinterpret_cast<std::int64_t*>(batch_.samples().data()), count(), self);
}

nb::list Batch::key() const {
  const std::span<const std::uint64_t> samples = batch_.samples();
  nb::list keys = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(samples.size())));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::string_view key = source_->samples().key(samples[i]);
    // As Python gives names of files that are not UTF-8.
    PyObject* text = PyUnicode_DecodeUTF8(key.data(), static_cast<Py_ssize_t>(key.size()), "surrogateescape");
    if (!text) throw nb::python_error();
    PyList_SET_ITEM(keys.ptr(), static_cast<Py_ssize_t>(i), text);
  }
  return keys;
}

}  // namespace stoker::python
