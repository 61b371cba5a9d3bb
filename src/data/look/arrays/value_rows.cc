#include "data/look/arrays/value_rows.h"

#include <algorithm>
#include <array>

#include "base/encode.h"
#include "data/components/npy.h"
#include "data/decode/decode.h"
#include "data/look/foreign_example.h"
#include "data/pack/source.h"
#include "format/chunks/filters.h"
#include "format/shard_source.h"

namespace stoker::data {

namespace {

using formats::ElementType;
using Values = formats::RowArrays::Values;

constexpr std::uint64_t kLongestLabel = 4096;

bool is_of_bytes(const ElementType& type) {
  return type.kind == ElementType::Kind::varying &&
         (type.letter == ElementType::kBytes ||
          (type.letter == ElementType::kNumbers && type.of == DType::u8));
}

}  // namespace

Result<ValueRows> ValueRows::open(const Path& file, const formats::RowArrays& arrays,
                                  std::span<const Values* const> chosen, From from, ShardScan& scan) {
  ValueRows rows(arrays);
  const std::string subject = printable(file.string());
  std::vector<formats::ChunkedArray> stored;
  for (const Values* values : chosen) RETURN_IF_ERROR(rows.add(*values, from, scan, stored));
  OK_OR_RETURN(parts, arrays.parts());
  OK_OR_RETURN(shard, formats::ShardFile::open(file, parts));
  OK_OR_RETURN(size, shard.size());
  OK_OR_RETURN(map, formats::ChunkMap::create(std::move(stored), size, subject, std::move(parts)));
  rows.shard_ = std::move(shard);
  rows.map_ = std::make_unique<formats::ChunkMap>(std::move(map));
  rows.reader_ = std::make_unique<formats::ChunkReader>(
      *rows.map_, std::make_shared<formats::ChunkCache>(formats::kKeptChunks), subject);
  RETURN_IF_ERROR(rows.name_kinds());
  std::erase_if(rows.kinds_, [&](const Kind& kind) {
    const bool is_left = from == From::where_they_lie && kind.is_list;
    if (is_left) scan.only_in_copies.push_back(format("array '{}'", printable(kind.of->name)));
    return is_left;
  });
  return rows;
}

Status ValueRows::add(const Values& values, From from, ShardScan& scan,
                      std::vector<formats::ChunkedArray>& stored) {
  const bool is_of_numbers = values.type.letter == ElementType::kNumbers && values.type.of != DType::u8;
  if (from == From::where_they_lie && (values.is_utf32() || is_of_numbers)) {
    scan.only_in_copies.push_back(format("array '{}'", printable(values.name)));
    return {};
  }
  if (values.is_utf32()) {
    kinds_.push_back({.of = &values, .extension = {}, .places = {}});
    return {};
  }
  Result<formats::ValueArray> found = arrays_->places(values);
  const bool is_of_one_size = values.type.kind != ElementType::Kind::varying;
  if (!found.ok() && found.status().code() == Code::invalid && is_of_one_size && from == From::copy) {
    kinds_.push_back({.of = &values, .extension = {}, .places = {}});  // each is read as UTF-32 is
    return {};
  }
  if (!found.ok() && found.status().code() == Code::invalid) {
    scan.not_taken[format("array '{}'", values.name)] = arrays_->rows();
    return {};
  }
  if (!found.ok()) return found.status();
  std::uint64_t begin = 0;
  for (const formats::ChunkedArray& array : stored)
    begin += formats::product(array.shape, array.element_bytes).value_or(0);
  for (formats::ValueArray::Place& place : found->places) place.begin += begin;
  stored.push_back(std::move(found->array));
  kinds_.push_back(
      {.of = &values, .extension = {}, .places = std::move(found->places), .order = found->order});
  return {};
}

// "jpg" and the like, or "" for what is none: by the first value that is not empty.
Result<std::string> ValueRows::picture_kind(const Kind& kind) const {
  if (!is_of_bytes(kind.of->type)) return std::string();
  for (const formats::ValueArray::Place& place : kind.places) {
    if (place.bytes == 0) continue;
    std::array<std::byte, kImageHead> head{};
    const auto bytes = std::span(head).first(std::min<std::uint64_t>(head.size(), place.bytes));
    RETURN_IF_ERROR(reader_->read(shard_, place.begin, bytes));
    return std::string(image_extension(bytes));
  }
  return std::string();
}

Status ValueRows::name_kinds() {
  std::vector<std::string> pictures;
  for (const Kind& kind : kinds_) {
    OK_OR_RETURN(picture, picture_kind(kind));
    pictures.push_back(std::move(picture));
  }
  const auto others = std::count(pictures.begin(), pictures.end(), std::string());
  const bool is_only_picture = static_cast<std::size_t>(others) + 1 == pictures.size();
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    Kind& kind = kinds_[i];
    kind.is_list = kind.of->type.letter == ElementType::kNumbers && pictures[i].empty();
    kind.extension = extension_of_feature(kind.of->name);
    if (kind.is_list) {
      kind.extension += ".npy";
    } else if (!pictures[i].empty()) {
      kind.extension = is_only_picture ? pictures[i] : kind.extension + '.' + pictures[i];
    } else if (is_image_extension(kind.extension)) {
      kind.extension += ".bin";
    }
  }
  return {};
}

std::uint64_t ValueRows::bytes() const {
  constexpr std::uint64_t kNpyHeader = 128;
  std::uint64_t bytes = 0;
  for (const Kind& kind : kinds_) {
    if (kind.places.empty()) bytes += arrays_->rows() * kind.of->type.bytes;
    for (const formats::ValueArray::Place& place : kind.places)
      bytes += place.bytes + (kind.is_list ? kNpyHeader : 0);
  }
  return bytes;
}

Status ValueRows::append(const Kind& kind, std::uint64_t row, std::string& into) const {
  if (kind.places.empty()) {
    OK_OR_RETURN(text, arrays_->text(*kind.of, row));
    into += text;
    return {};
  }
  const formats::ValueArray::Place& place = kind.places[row];
  if (kind.is_list) {
    const std::uint64_t items = place.bytes / size_of(kind.of->type.of);
    into += npy_header(kind.of->type.of, {static_cast<std::int64_t>(items)});
  }
  const std::size_t at = into.size();
  into.resize(at + place.bytes);
  const auto out = std::as_writable_bytes(std::span(into)).subspan(at);
  RETURN_IF_ERROR(reader_->read(shard_, place.begin, out));
  if (kind.is_list && kind.order == formats::ByteOrder::big)
    formats::swap_bytes(out, size_of(kind.of->type.of));
  return {};
}

std::vector<formats::ChunkedArray> ValueRows::arrays() const {
  std::vector<formats::ChunkedArray> arrays;
  for (const formats::ChunkMap::Array& array : map_->arrays()) arrays.push_back(array.is);
  return arrays;
}

Result<std::vector<std::string>> read_texts(const Path& file, const formats::RowArrays& arrays,
                                            const Values& values) {
  ShardScan ignored;
  const Values* const only[] = {&values};
  OK_OR_RETURN(rows, ValueRows::open(file, arrays, only, ValueRows::From::copy, ignored));
  const auto refused = [&](std::string_view what) {
    return invalid("{}: array '{}': {}", printable(file.string()), printable(values.name), what);
  };
  if (rows.kinds().empty()) return refused("its texts lie in no one file, as labels must");
  std::vector<std::string> texts(arrays.rows());
  for (std::uint64_t row = 0; row < arrays.rows(); ++row) {
    RETURN_IF_ERROR(rows.append(rows.kinds()[0], row, texts[row]));
    if (texts[row].size() > kLongestLabel || !is_utf8(texts[row]))
      return refused(format("row {} is no label: it is not UTF-8, or has over {} bytes", row, kLongestLabel));
  }
  return texts;
}

}  // namespace stoker::data
