#include "core/batch.h"

namespace stoker::python {
namespace nb = nanobind;
namespace {

template <typename T>
Array array(T* data, std::size_t size, nb::handle owner) {
  return Array(data, {size}, owner, {}, nb::dtype<T>());
}

nb::dlpack::dtype_code code_of(DType type) {
  switch (type) {
    case DType::boolean:
      return nb::dlpack::dtype_code::Bool;
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64:
      return nb::dlpack::dtype_code::UInt;
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
      return nb::dlpack::dtype_code::Int;
    case DType::bf16:
      return nb::dlpack::dtype_code::Bfloat;
    case DType::f16:
    case DType::f32:
    case DType::f64:
      break;
  }
  return nb::dlpack::dtype_code::Float;
}

}  // namespace

nb::dlpack::dtype dlpack_type(DType type) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(type));
  return {static_cast<std::uint8_t>(code_of(type)), bits, 1};
}

namespace {

Array array(const MutableTensorView& view, nb::handle owner) {
  const std::vector<std::size_t> shape(view.shape.begin(), view.shape.end());
  return Array(view.data.data(), shape.size(), shape.data(), owner, nullptr, dlpack_type(view.dtype));
}

nb::str text(std::string_view bytes, const char* errors) {
  PyObject* decoded = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), errors);
  if (!decoded) throw nb::python_error();
  return nb::steal<nb::str>(decoded);
}

}  // namespace

// In a forked child, the lock of the memory pool may be held for ever by a thread of the parent.
PyBatch::~PyBatch() {
  if (::getpid() != pid_) static_cast<void>(new loader::Batch(std::move(batch_)));
}

Array PyBatch::image(nb::handle self) { return array(batch_.image(), self); }

Array PyBatch::bytes(nb::handle self) {
  const std::span<std::byte> bytes = batch_.bytes();
  return array(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size(), self);
}

Array PyBatch::offsets(nb::handle self) {
  return array(batch_.offsets().data(), batch_.offsets().size(), self);
}

Array PyBatch::label(nb::handle self) {
  const MutableTensorView soft = batch_.soft_labels();
  return soft.shape[1] > 0 ? array(soft, self) : array(batch_.labels().data(), count(), self);
}

Array PyBatch::index(nb::handle self) {
  // Sample numbers are below 2^32; PyTorch has no arithmetic on unsigned 64-bit integers.
  return array(reinterpret_cast<std::int64_t*>(batch_.samples().data()), count(), self);
}

nb::list PyBatch::key() const {
  const std::span<const std::uint64_t> samples = batch_.samples();
  nb::list keys = nb::steal<nb::list>(PyList_New(static_cast<Py_ssize_t>(samples.size())));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::string_view key = source_->samples().key(samples[i]);
    // Like Python's file names that are not UTF-8.
    PyList_SetItem(keys.ptr(), static_cast<Py_ssize_t>(i), text(key, "surrogateescape").release().ptr());
  }
  return keys;
}

nb::object PyBatch::column(nb::handle self, std::size_t i) {
  if (i >= kinds_.size()) throw nb::index_error();
  if (kinds_[i] == loader::FieldKind::number) return nb::cast(array(batch_.numbers(i).data(), count(), self));
  if (kinds_[i] == loader::FieldKind::integer)
    return nb::cast(array(batch_.integers(i).data(), count(), self));
  nb::list texts;
  for (const std::string& value : batch_.texts(i)) texts.append(text(value, "replace"));
  return texts;
}

}  // namespace stoker::python
