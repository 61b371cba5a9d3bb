#include "parquet/writer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/hashes/crc32.h"
#include "parquet/pages/page.h"
#include "parquet/thrift/thrift_writer.h"

namespace stoker::parquet {

static_assert(std::endian::native == std::endian::little, "Parquet is little-endian");

namespace {

constexpr std::string_view kMagic = "PAR1";
constexpr std::string_view kCreator = "stoker version 1";  // of the layout, not of the program
constexpr int kText = 0;                                   // converted type UTF8, as Parquet numbers it

constexpr std::uint64_t kPage = 1u << 20;
constexpr std::uint64_t kGroup = 128u << 20;  // of the streamed column
constexpr std::uint64_t kMaxBuffered = 32u << 20;
constexpr std::uint64_t kMaxRows = 1u << 20;
// A value of the streamed column of this size or more is a separate page, which is not buffered.
constexpr std::uint64_t kOwnPage = 256u << 10;

template <typename T>
void put_number(std::string& text, T value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string page_header(std::uint64_t bytes, std::uint64_t values, std::optional<std::uint32_t> crc) {
  ThriftWriter header;
  header.begin();
  header.i32(1, 0);  // a data page
  header.i32(2, static_cast<std::int64_t>(bytes));
  header.i32(3, static_cast<std::int64_t>(bytes));
  if (crc) header.i32(4, static_cast<std::int32_t>(*crc));
  header.begin(5);
  header.i32(1, static_cast<std::int64_t>(values));
  header.i32(2, kPlainValues);
  header.i32(3, kRleValues);
  header.i32(4, kRleValues);
  header.end();
  header.end();
  return header.text();
}

}  // namespace

void ParquetWriter::Levels::add(bool is_there) {
  if (count > 0 && value != is_there) runs = finish();
  value = is_there;
  ++count;
}

// The runs so far.
std::string ParquetWriter::Levels::finish() {
  std::string all = std::move(runs);
  if (count > 0) {
    std::uint64_t head = count << 1;
    for (; head >= 128; head >>= 7) all += static_cast<char>(head | 128);
    all += static_cast<char>(head);
    all += value ? '\1' : '\0';
  }
  *this = {};
  return all;
}

ParquetWriter::ParquetWriter(archive::ByteSink& sink, ParquetColumns shape)
    : sink_(sink), has_labels_(shape.has_labels) {
  columns_.push_back({.name = "__key__", .type = kParquetByteArray, .is_optional = false});
  for (std::size_t i = 0; i < shape.files.size(); ++i) {
    columns_.push_back({.name = std::move(shape.files[i]), .type = kParquetByteArray});
    columns_.back().is_streamed = i == shape.streamed;
  }
  if (has_labels_) columns_.push_back({.name = "cls", .type = kParquetInt64});
}

Status ParquetWriter::put(std::string_view bytes) {
  STOKER_RETURN_IF_ERROR(sink_.write(std::as_bytes(std::span(bytes))));
  position_ += bytes.size();
  return {};
}

void ParquetWriter::set(Column& column, bool is_there) {
  column.is_set = true;
  ++column.rows;
  if (column.is_optional) column.levels.add(is_there);
}

Status ParquetWriter::check_size(std::uint64_t bytes) const {
  if (bytes <= kParquetValueLimit) return {};
  return invalid("sample '{}': has a file of {} bytes (a value of Parquet may have 2 GiB)", printable(key_),
                 bytes);
}

Status ParquetWriter::begin_row(std::string_view key, std::optional<std::int64_t> label) {
  if (position_ == 0) STOKER_RETURN_IF_ERROR(put(kMagic));
  for (Column& column : columns_) column.is_set = false;
  key_ = key;
  Column& keys = columns_.front();
  set(keys, true);
  put_number(keys.values, static_cast<std::uint32_t>(key.size()));
  keys.values += key;
  if (!has_labels_) return {};
  set(columns_.back(), label.has_value());
  if (label) put_number(columns_.back().values, *label);
  return {};
}

Status ParquetWriter::add(std::size_t which, std::span<const std::byte> bytes, std::uint32_t crc32c) {
  Column& column = file(which);
  if (column.is_streamed && bytes.size() >= kOwnPage) {
    STOKER_RETURN_IF_ERROR(begin_streamed(bytes.size()));
    return append(bytes, crc32c);
  }
  STOKER_RETURN_IF_ERROR(check_size(bytes.size()));
  STOKER_CHECK(!column.is_set);
  set(column, true);
  put_number(column.values, static_cast<std::uint32_t>(bytes.size()));
  column.pending.push_back({.file = offsets_.size(), .at = column.values.size()});
  offsets_.push_back(0);
  column.values += text_of(bytes);
  return {};
}

Status ParquetWriter::begin_streamed(std::uint64_t bytes) {
  const auto found =
      std::find_if(columns_.begin(), columns_.end(), [](const Column& c) { return c.is_streamed; });
  STOKER_CHECK(found != columns_.end() && !found->is_set);
  STOKER_RETURN_IF_ERROR(check_size(bytes));
  STOKER_RETURN_IF_ERROR(end_page(*found));
  std::string head;
  set(*found, true);
  found->rows = 0;  // of this page, which is complete
  const std::string levels = found->levels.finish();
  put_number(head, static_cast<std::uint32_t>(levels.size()));
  head += levels;
  put_number(head, static_cast<std::uint32_t>(bytes));
  // Without CRC: it would precede bytes that are not read yet.
  const std::string page = page_header(head.size() + bytes, 1, std::nullopt) + head;
  if (found->bytes == 0) found->begin = position_;
  found->bytes += page.size() + bytes;
  STOKER_RETURN_IF_ERROR(put(page));
  offsets_.push_back(position_);
  remaining_ = bytes;
  return {};
}

Status ParquetWriter::append(std::span<const std::byte> piece, std::uint32_t crc32c) {
  STOKER_CHECK(piece.size() <= remaining_);
  remaining_ -= piece.size();
  STOKER_RETURN_IF_ERROR(sink_.write_with_crc(piece, crc32c));
  position_ += piece.size();
  return {};
}

Status ParquetWriter::end_row() {
  if (remaining_ != 0) return internal("row: {} bytes short of the announced size", remaining_);
  ++rows_;
  std::uint64_t streamed = 0;
  std::uint64_t buffered = 0;
  for (Column& column : columns_) {
    if (!column.is_set) set(column, false);
    if (column.values.size() >= kPage) STOKER_RETURN_IF_ERROR(end_page(column));
    if (column.is_streamed) streamed = column.bytes;
    if (!column.is_streamed) buffered += column.buffered.size();
  }
  const bool is_full = streamed >= kGroup || buffered >= kMaxBuffered || rows_ >= kMaxRows;
  return is_full ? end_group() : Status();
}

// Writes or buffers the current page.
Status ParquetWriter::end_page(Column& column) {
  if (column.rows == 0) return {};
  std::string body;
  if (column.is_optional) {
    const std::string levels = column.levels.finish();
    put_number(body, static_cast<std::uint32_t>(levels.size()));
    body += levels;
  }
  const std::uint64_t bytes = body.size() + column.values.size();
  const std::uint32_t crc =
      crc32(std::as_bytes(std::span(column.values)), crc32(std::as_bytes(std::span(body))));
  const std::string head = page_header(bytes, column.rows, crc) + body;
  const std::uint64_t size = head.size() + column.values.size();
  if (column.is_streamed) {
    if (column.bytes == 0) column.begin = position_;
    for (const PendingOffset& value : column.pending)
      offsets_[value.file] = position_ + head.size() + value.at;
    STOKER_RETURN_IF_ERROR(put(head));
    STOKER_RETURN_IF_ERROR(put(column.values));
  } else {
    const std::uint64_t begin = column.buffered.size() + head.size();
    for (const PendingOffset& value : column.pending)
      column.buffered_offsets.push_back({.file = value.file, .at = begin + value.at});
    column.buffered += head;
    column.buffered += column.values;
  }
  column.bytes += size;
  column.values.clear();
  column.pending.clear();
  column.rows = 0;
  return {};
}

Status ParquetWriter::end_group() {
  Group& group = groups_.emplace_back();
  group.rows = std::exchange(rows_, 0);
  // The streamed column's last page before the columns that have waited.
  for (Column& column : columns_) {
    if (column.is_streamed) STOKER_RETURN_IF_ERROR(end_page(column));
  }
  for (Column& column : columns_) {
    STOKER_RETURN_IF_ERROR(end_page(column));
    if (!column.is_streamed) {
      column.begin = position_;
      for (const PendingOffset& value : column.buffered_offsets) offsets_[value.file] = position_ + value.at;
      STOKER_RETURN_IF_ERROR(put(column.buffered));
      column.buffered.clear();
      column.buffered_offsets.clear();
    }
    group.chunks.push_back({.begin = column.begin, .bytes = std::exchange(column.bytes, 0)});
  }
  return {};
}

Status ParquetWriter::finish() {
  if (position_ == 0) STOKER_RETURN_IF_ERROR(put(kMagic));
  if (rows_ > 0) STOKER_RETURN_IF_ERROR(end_group());
  const std::string text = footer();
  STOKER_RETURN_IF_ERROR(put(text));
  std::string tail;
  put_number(tail, static_cast<std::uint32_t>(text.size()));
  tail += kMagic;
  return put(tail);
}

// FileMetaData of parquet.thrift.
std::string ParquetWriter::footer() const {
  using Type = ThriftWriter::Type;
  ThriftWriter out;
  out.begin();
  out.i32(1, 1);
  out.list(2, Type::structure, 1 + columns_.size());
  out.begin();
  out.binary(4, "schema");
  out.i32(5, static_cast<std::int64_t>(columns_.size()));
  out.end();
  for (const Column& column : columns_) {
    out.begin();
    out.i32(1, column.type);
    out.i32(3, column.is_optional ? kParquetOptional : kParquetRequired);
    out.binary(4, column.name);
    if (!column.is_optional) out.i32(6, kText);
    out.end();
  }
  std::uint64_t rows = 0;
  for (const Group& group : groups_) rows += group.rows;
  out.i64(3, static_cast<std::int64_t>(rows));
  out.list(4, Type::structure, groups_.size());
  for (const Group& group : groups_) {
    std::uint64_t bytes = 0;
    out.begin();
    out.list(1, Type::structure, columns_.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const Chunk& chunk = group.chunks[i];
      bytes += chunk.bytes;
      out.begin();
      out.i64(2, static_cast<std::int64_t>(chunk.begin));
      out.begin(3);
      out.i32(1, columns_[i].type);
      out.list(2, Type::i32, 2);
      out.item(kPlainValues);
      out.item(kRleValues);
      out.list(3, Type::binary, 1);
      out.item(columns_[i].name);
      out.i32(4, 0);  // not compressed
      out.i64(5, static_cast<std::int64_t>(group.rows));
      out.i64(6, static_cast<std::int64_t>(chunk.bytes));
      out.i64(7, static_cast<std::int64_t>(chunk.bytes));
      out.i64(9, static_cast<std::int64_t>(chunk.begin));
      out.end();
      out.end();
    }
    out.i64(2, static_cast<std::int64_t>(bytes));
    out.i64(3, static_cast<std::int64_t>(group.rows));
    out.end();
  }
  out.binary(6, kCreator);
  out.end();
  return out.text();
}

}  // namespace stoker::parquet
