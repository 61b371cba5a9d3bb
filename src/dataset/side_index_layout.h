// The binary layout of index.bin, shared by its writer and its reader: docs/formats/index.md.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "base/hash.h"

namespace stoker::dataset {

static_assert(std::endian::native == std::endian::little, "index.bin is little-endian and read in place");

constexpr std::string_view kMagic = "\x89STKIDX\n";
constexpr std::string_view kSectionMagic = "SECT";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kTableEntryBytes = 64;
constexpr std::size_t kSectionHeaderBytes = 72;
constexpr std::size_t kColumnEntryBytes = 24;
constexpr std::size_t kCrcBytes = 8;

enum IndexColumn : std::uint16_t {
  kNames = 1,
  kFirst = 2,
  kLocators = 3,
  kLabels = 4,
  kKeyBegin = 5,
  kKeys = 6,
  kChunks = 7
};

inline Digest load_digest(std::span<const std::byte> bytes, std::size_t offset) {
  Digest digest;
  std::memcpy(digest.data(), bytes.data() + offset, digest.size());
  return digest;
}

}  // namespace stoker::dataset
