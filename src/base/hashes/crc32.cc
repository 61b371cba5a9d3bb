#include "base/hashes/crc32.h"

#include <isa-l.h>

namespace stoker {

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t seed) {
  // ISA-L only reads. Its parameter is not const in some versions.
  auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  return crc32_gzip_refl(seed, data, bytes.size());
}

}  // namespace stoker
