// What chunks of Zarr and HDF5, pages of Parquet and members of zip archives are packed with: DEFLATE, zstd,
// LZ4, byte shuffling, byte order. Every unpacking knows how many bytes must come out and gives nothing else,
// so a small file cannot become a large one. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace stoker::formats {

/// What stands around the DEFLATE stream; nothing in a zip archive.
enum class Deflate { gzip, zlib, bare };

/// Fills `out` exactly. Corrupt "<subject>: ..." for anything else, the stream's checksum included. Members
/// put one after another (gzip) are read as one.
Status inflate(Deflate kind, std::span<const std::byte> packed, std::span<std::byte> out,
               std::string_view subject);
/// Packs by zlib, `level` from 0 to 9. REQUIRES: gzip or zlib.
Result<std::string> deflate(Deflate kind, std::span<const std::byte> bytes, int level);

/// How many bytes come out of one, where nothing else says it: Invalid for over `most`, Corrupt for damage
/// that shows by then.
Result<std::uint64_t> inflated_bytes(Deflate kind, std::span<const std::byte> packed, std::uint64_t most,
                                     std::string_view subject);
Result<std::uint64_t> unzstd_bytes(std::span<const std::byte> packed, std::uint64_t most,
                                   std::string_view subject);
/// What its header says.
Result<std::uint64_t> unblosc_bytes(std::span<const std::byte> packed, std::string_view subject);

/// One zstd frame or several.
Status unzstd(std::span<const std::byte> packed, std::span<std::byte> out, std::string_view subject);
/// `has_checksum` puts XXH64 of the content behind it.
enum class ZstdChecksum { none, content };
Result<std::string> zstd(std::span<const std::byte> bytes, int level,
                         ZstdChecksum checksum = ZstdChecksum::none);

/// One LZ4 block.
Status unlz4(std::span<const std::byte> packed, std::span<std::byte> out, std::string_view subject);
Result<std::string> lz4(std::span<const std::byte> bytes);

/// A buffer of c-blosc.
Status unblosc(std::span<const std::byte> packed, std::span<std::byte> out, std::string_view subject);
struct BloscSettings {
  std::string compressor;  ///< blosclz, lz4, lz4hc, snappy, zlib, zstd
  int level = 5;           ///< 0 to 9
  int shuffle = 1;         ///< 0: not, 1: bytes, 2: bits
  std::size_t element_bytes = 1;
  std::size_t block_bytes = 0;  ///< 0: its own choice
};
/// REQUIRES: less than 2 GiB.
Result<std::string> blosc(const BloscSettings& settings, std::span<const std::byte> bytes);

/// Byte 0 of all elements, then byte 1 of all, ...; what is left over at the end stays as it is.
/// REQUIRES: out is as long as in, and another place.
void shuffle_bytes(std::span<const std::byte> in, std::span<std::byte> out, std::size_t element_bytes);
void unshuffle_bytes(std::span<const std::byte> in, std::span<std::byte> out, std::size_t element_bytes);

/// Turns the byte order of every `unit` bytes. REQUIRES: a size that is a multiple of it.
void swap_bytes(std::span<std::byte> bytes, std::size_t unit);

}  // namespace stoker::formats
