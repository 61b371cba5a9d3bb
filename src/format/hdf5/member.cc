#include "format/hdf5/member.h"

#include <cstring>

#include "base/status.h"

namespace stoker::formats::hdf5 {

namespace {

// With a size that the compiler knows a copy is one instruction.
template <std::size_t kBytes>
void pick_each(const std::byte* from, std::size_t step, std::span<std::byte> out) {
  for (std::size_t at = 0; at < out.size(); at += kBytes, from += step)
    std::memcpy(out.data() + at, from, kBytes);
}

}  // namespace

void RecordMember::pick(std::span<const std::byte> records, std::span<std::byte> out) const {
  CHECK(holds() && out.size() % bytes == 0 && records.size() == whole(out.size()));
  const std::byte* from = records.data() + offset;
  switch (bytes) {
    case 1:
      return pick_each<1>(from, record_bytes, out);
    case 2:
      return pick_each<2>(from, record_bytes, out);
    case 4:
      return pick_each<4>(from, record_bytes, out);
    case 8:
      return pick_each<8>(from, record_bytes, out);
    default:
      break;
  }
  for (std::size_t at = 0; at < out.size(); at += bytes, from += record_bytes)
    std::memcpy(out.data() + at, from, bytes);
}

}  // namespace stoker::formats::hdf5
