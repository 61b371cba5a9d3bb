// How manifest.json begins and is signed: known to what writes it (manifest_text.cc) and to what reads it
// (manifest.cc), and to nobody else. Layout: docs/formats/checkpoint.md. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "base/text.h"

namespace stoker::checkpoint {

/// Up to the digits of the manifest's own CRC-32C.
inline constexpr std::string_view kManifestOpening = "{\n\"format\": \"stoker-checkpoint\",\n\"crc32c\": \"";
/// Stands in the place of those digits while they are computed.
inline constexpr std::string_view kNoManifestChecksum = "00000000";
/// Of the layout; raised by what an older Stoker would misread.
inline constexpr int kManifestVersion = 1;

/// The digits.
inline std::string manifest_checksum_text(std::uint32_t crc) { return format("{:08x}", crc); }

/// As if kNoManifestChecksum stood in its place. REQUIRES: the text begins as a manifest does.
inline std::uint32_t manifest_checksum(std::string_view text) {
  const std::uint32_t opening = crc32c(kNoManifestChecksum, crc32c(text.substr(0, kManifestOpening.size())));
  return crc32c(text.substr(kManifestOpening.size() + kNoManifestChecksum.size()), opening);
}

}  // namespace stoker::checkpoint
