#include "format/parquet/parquet.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "format/load.h"
#include "format/parquet/columns/leaf_reader.h"

namespace stoker::formats {

namespace {

using Type = ParquetLeaf::Type;

constexpr std::uint64_t kTailBytes = 8;  // length of the footer, magic
constexpr std::uint64_t kMagicBytes = 4;
constexpr std::uint64_t kFooterLimit = 256u << 20;

// The whole number of a slot in digits.
std::string digits(const ParquetValues& values, Type type, std::uint64_t slot) {
  const std::span<const std::byte> numbers = values.numbers;
  const std::size_t at = slot * byte_width(type);
  switch (type) {
    case Type::int8:
      return std::to_string(load<std::int8_t>(numbers, at));
    case Type::uint8:
      return std::to_string(load<std::uint8_t>(numbers, at));
    case Type::int16:
      return std::to_string(load<std::int16_t>(numbers, at));
    case Type::uint16:
      return std::to_string(load<std::uint16_t>(numbers, at));
    case Type::int32:
      return std::to_string(load<std::int32_t>(numbers, at));
    case Type::uint32:
      return std::to_string(load<std::uint32_t>(numbers, at));
    case Type::int64:
      return std::to_string(load<std::int64_t>(numbers, at));
    default:
      return std::to_string(load<std::uint64_t>(numbers, at));
  }
}

}  // namespace

Result<ParquetFile> ParquetFile::open(ReadAt read, std::uint64_t size, std::string subject) {
  ParquetFile file(std::move(read), size, std::move(subject));
  const Status none = corrupt("{}: is no Parquet file, or cut off", file.subject_);
  if (size < kMagicBytes + kTailBytes) return none;
  std::array<std::byte, kTailBytes> tail{};
  RETURN_IF_ERROR(file.read_(size - kTailBytes, tail));
  std::uint32_t length = 0;
  std::memcpy(&length, tail.data(), sizeof length);
  const std::string_view magic(reinterpret_cast<const char*>(tail.data()) + sizeof length, kMagicBytes);
  if (magic == "PARE") return invalid("{}: is encrypted", file.subject_);
  if (magic != "PAR1" || length > size - kMagicBytes - kTailBytes) return none;
  if (length > kFooterLimit)
    return invalid("{}: has a footer of {} bytes (at most 256 MiB)", file.subject_, length);
  std::vector<std::byte> bytes(length);
  RETURN_IF_ERROR(file.read_(size - kTailBytes - length, bytes));
  OK_OR_RETURN(footer, read_footer(bytes, file.subject_));
  file.footer_ = std::move(footer);
  for (const SchemaLeaf& leaf : file.footer_.leaves) file.leaves_.push_back(leaf.is);
  return file;
}

std::optional<std::size_t> ParquetFile::find(std::string_view name) const {
  const auto found = std::ranges::find(leaves_, name, &ParquetLeaf::name);
  if (found == leaves_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - leaves_.begin());
}

std::string ParquetFile::shown(std::size_t leaf) const {
  return format("{}: column '{}'", subject_, printable(leaves_[leaf].name));
}

Status ParquetFile::check_chunk(const ParquetChunk& chunk, std::size_t leaf) const {
  if (chunk.is_encrypted) return invalid("{}: is encrypted", shown(leaf));
  if (chunk.is_elsewhere) return invalid("{}: lies in another file", shown(leaf));
  if (leaves_[leaf].type == Type::other) return invalid("{}: has a type that is not read", shown(leaf));
  if (chunk.type != footer_.leaves[leaf].layout.stored.type)
    return corrupt("{}: has another type in a row group than in the file", shown(leaf));
  const bool lies_inside =
      chunk.begin >= 0 && chunk.bytes >= 0 && static_cast<std::uint64_t>(chunk.begin) <= size_ &&
      static_cast<std::uint64_t>(chunk.bytes) <= size_ - static_cast<std::uint64_t>(chunk.begin);
  return lies_inside ? Status() : corrupt("{}: lies beyond the end", shown(leaf));
}

std::uint64_t ParquetFile::stored_bytes(const ParquetChunk& chunk) const {
  constexpr std::uint64_t kHeader = 100;  // what a short chunk lacks, at most; what is too much is not read
  const std::uint64_t whole =
      static_cast<std::uint64_t>(chunk.bytes) + (footer_.has_short_chunks ? kHeader : 0);
  return std::min(whole, size_ - static_cast<std::uint64_t>(chunk.begin));
}

ChunkPages ParquetFile::pages_of(const ParquetChunk& chunk, std::string_view subject) const {
  return {read_, static_cast<std::uint64_t>(chunk.begin), stored_bytes(chunk), subject};
}

Result<ParquetValues> ParquetFile::read_leaf(std::size_t group, std::size_t leaf,
                                             const ParquetLimits& limits) const {
  ParquetValues values;
  RETURN_IF_ERROR(read_leaf(group, leaf, values, limits));
  return values;
}

Status ParquetFile::read_leaf(std::size_t group, std::size_t leaf, ParquetValues& values,
                              const ParquetLimits& limits) const {
  const ParquetGroup& of = footer_.groups[group];
  const ParquetChunk& chunk = of.chunks[leaf];
  RETURN_IF_ERROR(check_chunk(chunk, leaf));
  const std::string subject = shown(leaf);
  ChunkPages pages = pages_of(chunk, subject);
  std::uint64_t left = limits.values.value;
  return read_leaf_chunk({chunk, footer_.leaves[leaf], of.rows, subject, &left}, pages, values);
}

Result<std::vector<std::string>> ParquetFile::read_texts(std::size_t leaf,
                                                         const ParquetLimits& limits) const {
  const ParquetLeaf& is = leaves_[leaf];
  const bool is_text = is.type == Type::bytes;
  if (is.lists > 0 || (!is_text && !is_integer(is.type)))
    return invalid("{}: holds neither text nor whole numbers", shown(leaf));
  std::vector<std::string> texts;
  const std::string subject = shown(leaf);
  std::uint64_t left = limits.values.value;
  ParquetValues values;
  for (const ParquetGroup& group : footer_.groups) {
    const ParquetChunk& chunk = group.chunks[leaf];
    RETURN_IF_ERROR(check_chunk(chunk, leaf));
    ChunkPages pages = pages_of(chunk, subject);
    RETURN_IF_ERROR(
        read_leaf_chunk({chunk, footer_.leaves[leaf], group.rows, subject, &left}, pages, values));
    if (values.slots > left / sizeof(std::string)) return invalid("{}: is too large", subject);
    left -= values.slots * sizeof(std::string);
    for (std::uint64_t slot = 0; slot < values.slots; ++slot) {
      if (is_text)
        texts.emplace_back(values.texts[slot]);
      else
        texts.push_back(values.is_present(slot) ? digits(values, is.type, slot) : "");
    }
  }
  if (texts.size() == rows()) return texts;
  return corrupt("{}: has {} values, the file {} rows", subject, texts.size(), rows());
}

}  // namespace stoker::formats
