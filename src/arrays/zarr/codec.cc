#include "arrays/zarr/codec.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "codec/filters/filters.h"
#include "codec/load.h"

namespace stoker::arrays {

namespace {

using CodecKind = BytesCodec::Kind;
using Bytes = std::span<const std::byte>;

constexpr std::size_t kCrcBytes = 4;
constexpr std::size_t kLz4SizeBytes = 4;  // numcodecs stores the unpacked size before the block

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

Status no_memory(std::string_view subject, std::uint64_t bytes) {
  return unavailable("{}: no memory for a chunk of {} bytes", subject, bytes);
}

codec::BloscSettings blosc_settings(const BytesCodec& codec) {
  return {.compressor = codec.compressor,
          .level = codec.level,
          .shuffle = static_cast<int>(codec.shuffle),
          .element_bytes = codec.element_bytes,
          .block_bytes = codec.block_bytes};
}

Status unpack(const BytesCodec& codec, Bytes packed, std::span<std::byte> out, std::string_view subject) {
  switch (codec.kind) {
    case CodecKind::blosc:
      return codec::decompress_blosc(packed, out, subject);
    case CodecKind::zstd:
      return codec::decompress_zstd(packed, out, subject);
    case CodecKind::gzip:
      return inflate(codec::Deflate::gzip, packed, out, subject);
    case CodecKind::zlib:
      return inflate(codec::Deflate::zlib, packed, out, subject);
    case CodecKind::lz4:
      if (packed.size() < kLz4SizeBytes || codec::load<std::uint32_t>(packed, 0) != out.size()) {
        return corrupt("{}: LZ4 data is damaged", subject);
      }
      return codec::decompress_lz4(packed.subspan(kLz4SizeBytes), out, subject);
    case CodecKind::shuffle:
      if (packed.size() != out.size()) {
        return corrupt("{}: holds {} bytes, expected {}", subject, packed.size(), out.size());
      }
      codec::unshuffle_bytes(packed, out, codec.element_bytes);
      return {};
    case CodecKind::crc32c:
      break;
  }
  return internal("{}: no such codec", subject);
}

// The unpacked size according to the compressed data, or found by unpacking.
Result<std::uint64_t> expanded_bytes(const BytesCodec& codec, Bytes packed, std::uint64_t most,
                                     std::string_view subject) {
  switch (codec.kind) {
    case CodecKind::blosc:
      return codec::blosc_decompressed_size(packed, subject);
    case CodecKind::zstd:
      return codec::zstd_decompressed_size(packed, most, subject);
    case CodecKind::gzip:
      return inflated_size(codec::Deflate::gzip, packed, most, subject);
    case CodecKind::zlib:
      return inflated_size(codec::Deflate::zlib, packed, most, subject);
    default:
      break;
  }
  if (packed.size() < kLz4SizeBytes) return corrupt("{}: LZ4 data is damaged", subject);
  return codec::load<std::uint32_t>(packed, 0);
}

Result<std::string> pack(const BytesCodec& codec, Bytes bytes) {
  switch (codec.kind) {
    case CodecKind::blosc:
      return compress_blosc(blosc_settings(codec), bytes);
    case CodecKind::zstd:
      return compress_zstd(bytes, codec.level,
                           codec.has_checksum ? codec::ZstdChecksum::content : codec::ZstdChecksum::none);
    case CodecKind::gzip:
      return deflate(codec::Deflate::gzip, bytes, codec.level);
    case CodecKind::zlib:
      return deflate(codec::Deflate::zlib, bytes, codec.level);
    case CodecKind::lz4: {
      const auto size = static_cast<std::uint32_t>(bytes.size());
      STOKER_ASSIGN_OR_RETURN(block, codec::compress_lz4(bytes));
      return std::string(reinterpret_cast<const char*>(&size), sizeof size) + block;
    }
    case CodecKind::shuffle: {
      std::string shuffled(bytes.size(), '\0');
      codec::shuffle_bytes(bytes, std::as_writable_bytes(std::span(shuffled)), codec.element_bytes);
      return shuffled;
    }
    case CodecKind::crc32c: {
      const std::uint32_t crc = crc32c(bytes);
      const std::string stored(reinterpret_cast<const char*>(&crc), sizeof crc);
      std::string packed = codec.is_crc_first ? stored : std::string();
      packed += text_of(bytes);
      if (!codec.is_crc_first) packed += stored;
      return packed;
    }
  }
  return internal("no such codec");
}

// Checks and removes the CRC at the start or end.
Result<Bytes> without_crc(const BytesCodec& codec, Bytes bytes, std::string_view subject) {
  if (bytes.size() < kCrcBytes) return corrupt("{}: too short for its CRC-32C", subject);
  const std::size_t length = bytes.size() - kCrcBytes;
  const Bytes content = codec.is_crc_first ? bytes.last(length) : bytes.first(length);
  const auto expected = codec::load<std::uint32_t>(bytes, codec.is_crc_first ? 0 : length);
  const std::uint32_t found = crc32c(content);
  if (expected != found)
    return corrupt("{}: CRC-32C expected {:08x}, found {:08x}", subject, expected, found);
  return content;
}

// Decodes in reverse order of the codecs. The size before each is known: only a CRC adds to it, because
// there is at most one compressor.
Result<codec::Buffer> unpacked(const Pipeline& pipeline, std::uint64_t bytes, Bytes stored,
                               std::string_view subject) {
  std::vector<std::uint64_t> size_before;  // input of each codec
  for (const BytesCodec& codec : pipeline.codecs) {
    size_before.push_back(bytes);
    if (codec.kind == CodecKind::crc32c) bytes += kCrcBytes;
  }
  codec::Buffer held;
  bool is_held = false;
  Bytes now = stored;
  for (std::size_t i = pipeline.codecs.size(); i-- > 0;) {
    const BytesCodec& codec = pipeline.codecs[i];
    if (codec.kind == CodecKind::crc32c) {
      STOKER_ASSIGN_OR_RETURN(content, without_crc(codec, now, subject));
      now = content;
      continue;
    }
    codec::Buffer next(size_before[i]);
    if (next.bytes().size() != size_before[i]) return no_memory(subject, size_before[i]);
    STOKER_RETURN_IF_ERROR(unpack(codec, now, next.bytes(), subject));
    held = std::move(next);
    is_held = true;
    now = held.bytes();
  }
  const std::uint64_t expected = size_before.empty() ? bytes : size_before.front();
  if (now.size() != expected)
    return corrupt("{}: holds {} bytes, expected {}", subject, now.size(), expected);
  if (is_held && now.data() == held.bytes().data() && held.bytes().size() == expected) return held;
  codec::Buffer copy(expected);
  if (copy.bytes().size() != expected) return no_memory(subject, expected);
  std::memcpy(copy.bytes().data(), now.data(), expected);
  return copy;
}

enum class Direction { to_stored, to_array };

// Copies elements between the array's order of dimensions and the stored one.
void transpose(const Pipeline& pipeline, ChunkShape shape, Bytes from, std::span<std::byte> to,
               Direction direction) {
  const codec::Extents plain = codec::c_strides(shape.sizes, shape.type.bytes);
  codec::Extents stored_sizes;
  for (const std::size_t axis : pipeline.axes) stored_sizes.push_back(shape.sizes[axis]);
  const codec::Extents dense = codec::c_strides(stored_sizes, shape.type.bytes);
  codec::Extents stored(plain.size());  // the stored array's strides, in the array's order of dimensions
  for (std::size_t i = 0; i < dense.size(); ++i) stored[pipeline.axes[i]] = dense[i];
  const bool to_stored = direction == Direction::to_stored;
  codec::copy_box({from.data(), to_stored ? plain : stored}, {to.data(), to_stored ? stored : plain},
                  shape.sizes, shape.type.bytes);
}

bool is_identity(const std::vector<std::size_t>& axes) {
  for (std::size_t d = 0; d < axes.size(); ++d) {
    if (axes[d] != d) return false;
  }
  return true;
}

}  // namespace

std::uint64_t max_stored_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kRoom = 64u << 10;
  return bytes + bytes / 64 + kRoom;
}

Result<codec::Buffer> decode_chunk(const Pipeline& pipeline, ChunkShape shape, Bytes stored,
                                   std::string_view subject) {
  const std::uint64_t bytes = shape.bytes();
  STOKER_ASSIGN_OR_RETURN(elements, unpacked(pipeline, bytes, stored, subject));
  if (pipeline.order == codec::ByteOrder::big) codec::swap_bytes(elements.bytes(), shape.type.swap_unit());
  if (is_identity(pipeline.axes)) return std::move(elements);
  codec::Buffer turned(bytes);
  if (turned.bytes().size() != bytes) return no_memory(subject, bytes);
  transpose(pipeline, shape, elements.bytes(), turned.bytes(), Direction::to_array);
  return turned;
}

Result<std::uint64_t> unpacked_bytes(const Pipeline& pipeline, Bytes stored, std::uint64_t most,
                                     std::string_view subject) {
  std::uint64_t bytes = stored.size();
  std::uint64_t begin = 0;  // in `stored`, until a compressor is undone
  for (std::size_t i = pipeline.codecs.size(); i-- > 0;) {
    const BytesCodec& codec = pipeline.codecs[i];
    if (codec.kind == CodecKind::shuffle) continue;
    if (codec.kind == CodecKind::crc32c) {
      if (bytes < kCrcBytes) return corrupt("{}: too short for its CRC-32C", subject);
      bytes -= kCrcBytes;
      if (codec.is_crc_first) begin += kCrcBytes;
      continue;
    }
    // The only compressor: the rest of `stored` is its output.
    STOKER_ASSIGN_OR_RETURN(expanded, expanded_bytes(codec, stored.subspan(begin, bytes), most, subject));
    bytes = expanded;
  }
  if (bytes > most)
    return invalid("{}: unpacks to {} bytes (at most {} are read at once)", subject, bytes, most);
  return bytes;
}

Result<std::string> encode_chunk(const Pipeline& pipeline, ChunkShape shape, Bytes elements) {
  STOKER_CHECK(elements.size() == shape.bytes());
  std::string held;
  Bytes now = elements;
  const bool is_swapped = pipeline.order == codec::ByteOrder::big && shape.type.swap_unit() > 1;
  if (is_swapped || !is_identity(pipeline.axes)) {
    held.resize(elements.size());
    const std::span<std::byte> stored = std::as_writable_bytes(std::span(held));
    if (is_identity(pipeline.axes)) {
      std::copy(elements.begin(), elements.end(), stored.begin());
    } else {
      transpose(pipeline, shape, elements, stored, Direction::to_stored);
    }
    if (is_swapped) codec::swap_bytes(stored, shape.type.swap_unit());
    now = stored;
  }
  for (const BytesCodec& codec : pipeline.codecs) {
    STOKER_ASSIGN_OR_RETURN(packed, pack(codec, now));
    held = std::move(packed);
    now = std::as_bytes(std::span(held));
  }
  return pipeline.codecs.empty() && held.empty() ? std::string(text_of(now)) : std::move(held);
}

}  // namespace stoker::arrays
