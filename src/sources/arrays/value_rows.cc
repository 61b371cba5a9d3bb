#include "sources/arrays/value_rows.h"

#include <algorithm>
#include <array>

#include "base/encode.h"
#include "codec/filters/filters.h"
#include "codec/npy.h"
#include "dataset/shard_source.h"
#include "image/decode/decode.h"
#include "sources/foreign_example.h"
#include "sources/source.h"

namespace stoker::sources {

namespace {

using codec::ElementType;
using Values = arrays::RowArrays::Values;

constexpr std::uint64_t kLongestLabel = 4096;

bool is_of_bytes(const ElementType& type) {
  return type.kind == ElementType::Kind::variable_length &&
         (type.letter == ElementType::kBytes ||
          (type.letter == ElementType::kNumbers && type.item == DType::u8));
}

}  // namespace

Result<ValueRows> ValueRows::open(const Path& file, const arrays::RowArrays& arrays,
                                  std::span<const Values* const> chosen, Access access, ShardScan& scan) {
  ValueRows rows(arrays);
  const std::string subject = printable(file.string());
  std::vector<codec::ChunkedArray> stored;
  for (const Values* values : chosen) STOKER_RETURN_IF_ERROR(rows.add(*values, access, scan, stored));
  STOKER_ASSIGN_OR_RETURN(parts, arrays.parts());
  STOKER_ASSIGN_OR_RETURN(shard, codec::ShardFile::open(file, parts));
  STOKER_ASSIGN_OR_RETURN(size, shard.size());
  STOKER_ASSIGN_OR_RETURN(map, codec::ChunkMap::create(std::move(stored), size, subject, std::move(parts)));
  rows.shard_ = std::move(shard);
  rows.map_ = std::make_unique<codec::ChunkMap>(std::move(map));
  rows.reader_ = std::make_unique<codec::ChunkReader>(
      *rows.map_, std::make_shared<codec::ChunkCache>(dataset::kDefaultChunkCache), subject);
  STOKER_RETURN_IF_ERROR(rows.name_kinds());
  std::erase_if(rows.kinds_, [&](const Kind& kind) {
    const bool is_left = access == Access::in_place && kind.is_list;
    if (is_left) scan.copy_only.push_back(format("array '{}'", printable(kind.of->name)));
    return is_left;
  });
  return rows;
}

Status ValueRows::add(const Values& values, Access access, ShardScan& scan,
                      std::vector<codec::ChunkedArray>& stored) {
  const bool is_of_numbers = values.type.letter == ElementType::kNumbers && values.type.item != DType::u8;
  if (access == Access::in_place && (values.is_utf32() || is_of_numbers)) {
    scan.copy_only.push_back(format("array '{}'", printable(values.name)));
    return {};
  }
  if (values.is_utf32()) {
    kinds_.push_back({.of = &values, .extension = {}, .places = {}});
    return {};
  }
  Result<codec::ValueArray> found = arrays_->places(values);
  const bool is_of_one_size = values.type.kind != ElementType::Kind::variable_length;
  if (!found.ok() && found.status().code() == Code::invalid && is_of_one_size && access == Access::copy) {
    kinds_.push_back({.of = &values, .extension = {}, .places = {}});  // read row by row, like UTF-32
    return {};
  }
  if (!found.ok() && found.status().code() == Code::invalid) {
    scan.skipped_fields[format("array '{}'", values.name)] = arrays_->rows();
    return {};
  }
  if (!found.ok()) return found.status();
  std::uint64_t begin = 0;
  for (const codec::ChunkedArray& array : stored)
    begin += codec::product(array.shape, array.element_bytes).value_or(0);
  for (codec::ValueArray::Range& place : found->places) place.begin += begin;
  stored.push_back(std::move(found->array));
  if (found->fill) stored.push_back(std::move(*found->fill));
  kinds_.push_back(
      {.of = &values, .extension = {}, .places = std::move(found->places), .order = found->order});
  return {};
}

// "jpg" etc. by the first non-empty value, or "" if it is not an image.
Result<std::string> ValueRows::picture_kind(const Kind& kind) const {
  if (!is_of_bytes(kind.of->type)) return std::string();
  for (const codec::ValueArray::Range& place : kind.places) {
    if (place.bytes == 0) continue;
    std::array<std::byte, image::kImageHeaderBytes> head{};
    const auto bytes = std::span(head).first(std::min<std::uint64_t>(head.size(), place.bytes));
    STOKER_RETURN_IF_ERROR(reader_->read(shard_, place.begin, bytes));
    return std::string(image::image_extension(bytes));
  }
  return std::string();
}

Status ValueRows::name_kinds() {
  std::vector<std::string> pictures;
  for (const Kind& kind : kinds_) {
    STOKER_ASSIGN_OR_RETURN(picture, picture_kind(kind));
    pictures.push_back(std::move(picture));
  }
  const auto others = std::count(pictures.begin(), pictures.end(), std::string());
  const bool is_only_picture = static_cast<std::size_t>(others) + 1 == pictures.size();
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    Kind& kind = kinds_[i];
    kind.is_list = kind.of->type.letter == ElementType::kNumbers && pictures[i].empty();
    kind.extension = extension_for_feature(kind.of->name);
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
    for (const codec::ValueArray::Range& place : kind.places)
      bytes += place.bytes + (kind.is_list ? kNpyHeader : 0);
  }
  return bytes;
}

Status ValueRows::append(const Kind& kind, std::uint64_t row, std::string& into) const {
  if (kind.places.empty()) {
    STOKER_ASSIGN_OR_RETURN(text, arrays_->text(*kind.of, row));
    into += text;
    return {};
  }
  const codec::ValueArray::Range& place = kind.places[row];
  if (kind.is_list) {
    const std::uint64_t items = place.bytes / size_of(kind.of->type.item);
    into += codec::npy_header(kind.of->type.item, {static_cast<std::int64_t>(items)});
  }
  const std::size_t at = into.size();
  into.resize(at + place.bytes);
  const auto out = std::as_writable_bytes(std::span(into)).subspan(at);
  STOKER_RETURN_IF_ERROR(reader_->read(shard_, place.begin, out));
  if (kind.is_list && kind.order == codec::ByteOrder::big)
    codec::swap_bytes(out, size_of(kind.of->type.item));
  return {};
}

std::vector<codec::ChunkedArray> ValueRows::arrays() const {
  std::vector<codec::ChunkedArray> arrays;
  for (const codec::ChunkMap::Array& array : map_->arrays()) arrays.push_back(array.spec);
  return arrays;
}

Result<std::vector<std::string>> read_texts(const Path& file, const arrays::RowArrays& arrays,
                                            const Values& values) {
  ShardScan ignored;
  const Values* const only[] = {&values};
  STOKER_ASSIGN_OR_RETURN(rows, ValueRows::open(file, arrays, only, ValueRows::Access::copy, ignored));
  const auto refused = [&](std::string_view what) {
    return invalid("{}: array '{}': {}", printable(file.string()), printable(values.name), what);
  };
  if (rows.kinds().empty()) return refused("its texts are not in one file, which labels require");
  std::vector<std::string> texts(arrays.rows());
  for (std::uint64_t row = 0; row < arrays.rows(); ++row) {
    STOKER_RETURN_IF_ERROR(rows.append(rows.kinds()[0], row, texts[row]));
    if (texts[row].size() > kLongestLabel || !is_utf8(texts[row]))
      return refused(
          format("row {} is not a label: it is not UTF-8, or has over {} bytes", row, kLongestLabel));
  }
  return texts;
}

}  // namespace stoker::sources
