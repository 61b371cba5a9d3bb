// Compression of Zarr and HDF5 chunks, Parquet pages and zip members: DEFLATE, zstd, LZ4, byte shuffling,
// byte order. Every decompression knows its output size in advance, so a small file cannot become a large
// one. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "stoker/status.h"

namespace stoker::codec {

/// Framing of the DEFLATE stream; zip archives have no framing.
enum class Deflate { gzip, zlib, bare };

/// Fills `out` exactly. Corrupt "<subject>: ..." for any other size and a wrong checksum. Concatenated gzip
/// members are read as one.
Status inflate(Deflate kind, std::span<const std::byte> packed, std::span<std::byte> out,
               std::string_view subject);
/// Compresses with zlib, `level` from 0 to 9. REQUIRES: gzip or zlib.
Result<std::string> deflate(Deflate kind, std::span<const std::byte> bytes, int level);

/// The decompressed size of a stream that does not store it: Invalid for over `most`, Corrupt for damage
/// found until then.
Result<std::uint64_t> inflated_size(Deflate kind, std::span<const std::byte> packed, std::uint64_t most,
                                    std::string_view subject);
Result<std::uint64_t> zstd_decompressed_size(std::span<const std::byte> packed, std::uint64_t most,
                                             std::string_view subject);
/// The size in its header.
Result<std::uint64_t> blosc_decompressed_size(std::span<const std::byte> packed, std::string_view subject);

/// One zstd frame or several.
Status decompress_zstd(std::span<const std::byte> packed, std::span<std::byte> out, std::string_view subject);
/// `content` appends the XXH64 of the content.
enum class ZstdChecksum { none, content };
Result<std::string> compress_zstd(std::span<const std::byte> bytes, int level,
                                  ZstdChecksum checksum = ZstdChecksum::none);

/// One LZ4 block.
Status decompress_lz4(std::span<const std::byte> packed, std::span<std::byte> out, std::string_view subject);
Result<std::string> compress_lz4(std::span<const std::byte> bytes);

/// A buffer of c-blosc.
Status decompress_blosc(std::span<const std::byte> packed, std::span<std::byte> out,
                        std::string_view subject);
struct BloscSettings {
  std::string compressor;  ///< blosclz, lz4, lz4hc, snappy, zlib, zstd
  int level = 5;           ///< 0 to 9
  int shuffle = 1;         ///< 0: not, 1: bytes, 2: bits
  std::size_t element_bytes = 1;
  std::size_t block_bytes = 0;  ///< 0: automatic
};
/// REQUIRES: less than 2 GiB.
Result<std::string> compress_blosc(const BloscSettings& settings, std::span<const std::byte> bytes);

/// Byte 0 of all elements, then byte 1 of all, ...; a remainder at the end is copied. REQUIRES: out is as
/// long as in, and does not overlap it.
void shuffle_bytes(std::span<const std::byte> in, std::span<std::byte> out, std::size_t element_bytes);
void unshuffle_bytes(std::span<const std::byte> in, std::span<std::byte> out, std::size_t element_bytes);

/// Swaps the byte order of every `unit` bytes. REQUIRES: a size that is a multiple of it.
void swap_bytes(std::span<std::byte> bytes, std::size_t unit);

}  // namespace stoker::codec
