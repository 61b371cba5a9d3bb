#include "arrays/hdf5/member.h"

#include <cstring>

#include "stoker/status.h"

namespace stoker::arrays::hdf5 {

namespace {

// With a size that the compiler knows a copy is one instruction.
template <std::size_t kBytes>
void extract_each(const std::byte* from, std::size_t step, std::span<std::byte> out) {
  for (std::size_t at = 0; at < out.size(); at += kBytes, from += step)
    std::memcpy(out.data() + at, from, kBytes);
}

}  // namespace

void RecordMember::extract(std::span<const std::byte> records, std::span<std::byte> out) const {
  STOKER_CHECK(is_valid() && out.size() % bytes == 0 && records.size() == decoded_bytes(out.size()));
  const std::byte* from = records.data() + offset;
  switch (bytes) {
    case 1:
      return extract_each<1>(from, record_bytes, out);
    case 2:
      return extract_each<2>(from, record_bytes, out);
    case 4:
      return extract_each<4>(from, record_bytes, out);
    case 8:
      return extract_each<8>(from, record_bytes, out);
    default:
      break;
  }
  for (std::size_t at = 0; at < out.size(); at += bytes, from += record_bytes)
    std::memcpy(out.data() + at, from, bytes);
}

}  // namespace stoker::arrays::hdf5
