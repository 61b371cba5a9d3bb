// ZipReader on any bytes: members inside the archive or an error, and never more decompressed bytes than
// declared.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "archive/zip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::archive;
  const auto zip = ZipReader::open(
      [&](std::uint64_t offset, std::span<std::byte> out) -> stoker::Status {
        if (offset > size || out.size() > size - offset) std::abort();  // never beyond the end
        if (!out.empty()) std::memcpy(out.data(), data + offset, out.size());
        return {};
      },
      size, "fuzz");
  if (!zip.ok()) return 0;
  constexpr std::uint64_t kMost = 1u << 20;
  for (const ZipMember& member : zip->members()) {
    if (member.stored_bytes > size) std::abort();
    if (!member.is_readable() || member.bytes > kMost) continue;
    std::vector<std::byte> out(member.bytes);
    const bool is_read = zip->read(member, out).ok();
    std::vector<std::byte> pieces;
    const bool is_unpacked = zip->unpack(member,
                                         [&](std::span<const std::byte> piece) -> stoker::Status {
                                           pieces.insert(pieces.end(), piece.begin(), piece.end());
                                           return {};
                                         })
                                 .ok();
    if (pieces.size() > member.bytes) std::abort();
    if (is_read && is_unpacked && pieces != out) std::abort();
    const auto begin = zip->data_offset(member);
    if (begin.ok() && (*begin > size || member.stored_bytes > size - *begin)) std::abort();
  }
  return 0;
}
