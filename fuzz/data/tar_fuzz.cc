// TarReader on any bytes: members inside the archive or an error, and an end.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "archive/tar.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stoker::archive;
  TarReader reader(
      [&](std::uint64_t offset, std::span<std::byte> out) -> stoker::Status {
        if (offset > size || out.size() > size - offset) std::abort();  // never beyond the end
        if (!out.empty()) std::memcpy(out.data(), data + offset, out.size());
        return {};
      },
      size, "fuzz");
  std::uint64_t end = 0;
  for (;;) {
    const auto member = reader.next();
    if (!member.ok() || !member->has_value()) break;
    const TarMember& m = **member;
    if (m.header_offset < end || m.data_offset < m.header_offset + kTarBlock) std::abort();
    if (m.data_offset > size || m.size > size - m.data_offset) std::abort();
    if (m.name.size() > kTarNameLimit + 1) std::abort();
    end = m.data_offset + m.size;
  }
  const auto after = reader.next();
  if (!after.ok() || after->has_value()) std::abort();  // the end is the end
  return 0;
}
