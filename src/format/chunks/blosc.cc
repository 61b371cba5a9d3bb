#include <algorithm>
#include <blosc.h>

#include "format/chunks/filters.h"

namespace stoker::formats {

Result<std::uint64_t> unblosc_bytes(std::span<const std::byte> packed, std::string_view subject) {
  std::size_t bytes = 0;
  if (packed.size() < BLOSC_MIN_HEADER_LENGTH ||
      blosc_cbuffer_validate(packed.data(), packed.size(), &bytes) < 0) {
    return corrupt("{}: blosc data is damaged", subject);
  }
  return std::uint64_t{bytes};
}

Status unblosc(std::span<const std::byte> packed, std::span<std::byte> out, std::string_view subject) {
  OK_OR_RETURN(bytes, unblosc_bytes(packed, subject));
  if (bytes != out.size()) {
    return corrupt("{}: blosc data unpacks to {} bytes, expected {}", subject, bytes, out.size());
  }
  if (out.empty()) return {};
  const int got = blosc_decompress_ctx(packed.data(), out.data(), out.size(), 1);
  if (got < 0 || static_cast<std::size_t>(got) != out.size())
    return corrupt("{}: blosc data is damaged", subject);
  return {};
}

Result<std::string> blosc(const BloscSettings& settings, std::span<const std::byte> bytes) {
  std::string packed(bytes.size() + BLOSC_MAX_OVERHEAD, '\0');
  const int got = blosc_compress_ctx(settings.level, settings.shuffle,
                                     std::min<std::size_t>(settings.element_bytes, BLOSC_MAX_TYPESIZE),
                                     bytes.size(), bytes.data(), packed.data(), packed.size(),
                                     settings.compressor.c_str(), settings.block_bytes, 1);
  if (got <= 0) return invalid("blosc has no compressor '{}' here", settings.compressor);
  packed.resize(static_cast<std::size_t>(got));
  return packed;
}

}  // namespace stoker::formats
