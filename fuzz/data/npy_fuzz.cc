// read_npy on any bytes: an array inside the file, or an error.
#include <cstdint>
#include <cstdlib>

#include "codec/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto info = stoker::codec::read_npy({reinterpret_cast<const std::byte*>(data), size});
  if (!info.ok()) return 0;
  const auto elements = static_cast<std::uint64_t>(stoker::element_count(info->shape));
  if (info->data_offset > size || elements * size_of(info->element) > size - info->data_offset) std::abort();
  return 0;
}
