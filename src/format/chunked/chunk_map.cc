#include "format/chunked/chunk_map.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "base/encode.h"
#include "base/json/json.h"
#include "format/chunked/windows_internal.h"
#include "format/load.h"

namespace stoker::formats {

namespace {

using nlohmann::json;

constexpr std::size_t kPlaceBytes = 24;
constexpr std::size_t kMostArrays = 4096;
constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 27;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 62;
constexpr std::uint64_t kLargestHead = 1u << 16;
constexpr std::uint64_t kLargestElement = 1u << 20;

Status too_large(std::string_view subject, std::uint64_t bytes) {
  return invalid("{}: its chunks unpack to {} bytes each (at most 1 GiB is read where it lies)", subject,
                 bytes);
}

// Elements of a member are as far apart as records are.
Status measure_record(ChunkMap::Array& array, std::string_view subject) {
  const std::uint64_t member = array.record->member_bytes;
  const bool fits = array.chunk_bytes == member ||
                    std::find(array.strides.begin(), array.strides.end(), member) != array.strides.end();
  if (!fits) return corrupt("{}: its records do not fit in it", subject);
  for (std::uint64_t& stride : array.strides) {
    if (stride >= member) stride = stride / member * array.record->bytes;
  }
  array.held_bytes = array.is.coder->whole(array.chunk_bytes);
  return {};
}

// The sizes of an array of a grid, and whether there are so many chunks as it says.
Status measure_grid(ChunkMap::Array& array, std::string_view subject) {
  const ChunkedArray& is = array.is;
  const auto damaged = [&](std::string_view what) { return corrupt("{}: {}", subject, what); };
  const bool has_sizes = !is.shape.empty() && is.shape.size() <= kMostDimensions &&
                         is.chunks.size() == is.shape.size() && is.element_bytes > 0 &&
                         is.element_bytes <= kLargestElement && is.fill.size() == is.element_bytes;
  if (!has_sizes || std::find(is.chunks.begin(), is.chunks.end(), 0u) != is.chunks.end())
    return damaged("its sizes do not fit each other");
  const auto row = product(std::span(is.shape).subspan(1), is.element_bytes);
  const auto chunk = product(is.chunks, is.element_bytes);
  if (chunk && *chunk > kLargestChunk) return too_large(subject, *chunk);
  if (chunk && is.coder && is.coder->whole(*chunk) > kLargestChunk)
    return too_large(subject, is.coder->whole(*chunk));
  if (!row || !chunk || *row + is.head.size() > kMostBytes / std::max<std::uint64_t>(1, is.shape[0]))
    return damaged("its sizes overflow");
  array.row_bytes = *row;
  array.chunk_bytes = *chunk;
  array.bytes = is.shape[0] * array.unit();
  std::uint64_t chunks = 1;
  for (std::size_t d = 0; d < is.shape.size(); ++d) {
    array.counts.push_back(is.shape[d] / is.chunks[d] + (is.shape[d] % is.chunks[d] != 0));
    if (array.counts[d] > kMostChunks) return damaged("has too many chunks");
    chunks *= array.counts[d];
    if (chunks > kMostChunks) return damaged("has too many chunks");
  }
  if (chunks != is.places.size()) return damaged("its chunks are not all there");
  array.strides = c_strides(is.chunks, is.element_bytes);
  array.held_bytes = array.chunk_bytes;
  if (is.coder) array.record = is.coder->record();
  return array.record ? measure_record(array, subject) : Status();
}

Status measure_list(ChunkMap::Array& array, std::string_view subject) {
  array.page_begins.push_back(0);
  for (const StoredChunk& page : array.is.places) {
    if (page.unpacked() > kLargestChunk) return too_large(subject, page.unpacked());
    array.page_begins.push_back(array.page_begins.back() + page.unpacked());
  }
  array.bytes = array.page_begins.back();
  array.row_bytes = 1;
  const bool holds = array.is.element_bytes == 1 && array.is.head.empty() && array.is.shape.size() == 1 &&
                     array.is.shape[0] == array.bytes && array.bytes < kMostBytes;
  return holds ? Status() : corrupt("{}: its pages do not add up", subject);
}

Status check_places(const ChunkMap::Array& array, std::uint64_t shard_bytes, std::string_view subject) {
  for (std::size_t i = 0; i < array.is.places.size(); ++i) {
    const StoredChunk& place = array.is.places[i];
    if (place.is_missing() && !array.is.is_list()) continue;
    if (place.bytes > shard_bytes || place.offset > shard_bytes - place.bytes)
      return corrupt("{}: chunk {} lies beyond the end of the file", subject, i);
    const std::uint64_t bytes = array.is.is_list() ? place.unpacked() : array.chunk_bytes;
    const bool is_column =
        !array.is.is_list() && !array.is.windows && array.is.coder->kind() == ChunkCoder::Kind::column;
    const std::uint64_t most = is_column ? most_column_bytes(bytes / array.is.element_bytes)
                                         : most_packed_bytes(array.is.coder->whole(bytes));
    if (place.bytes > most) {
      return corrupt("{}: chunk {} is stored in {} bytes, it unpacks to {}", subject, i, place.bytes, bytes);
    }
  }
  return {};
}

Status check_parts(const std::vector<ShardPart>& parts, std::uint64_t shard_bytes, std::string_view subject) {
  std::uint64_t sum = 0;
  for (const ShardPart& part : parts) {
    if (const std::string_view why = unsafe_part(part.file); !why.empty())
      return corrupt("{}: the name '{}' of a part {}", subject, printable(part.file), why);
    if (part.bytes > shard_bytes - sum) return corrupt("{}: its parts do not add up", subject);
    sum += part.bytes;
  }
  return sum == shard_bytes ? Status() : corrupt("{}: its parts do not add up", subject);
}

json described(const ChunkedArray& array) {
  if (array.windows) {
    return {{"name", array.name},
            {"head", hex(std::as_bytes(std::span(array.head)))},
            {"windows", to_json(*array.windows)}};
  }
  return {{"name", array.name},
          {"shape", array.shape},
          {"chunks", array.chunks},
          {"element_bytes", array.element_bytes},
          {"fill", hex(array.fill)},
          {"head", hex(std::as_bytes(std::span(array.head)))},
          {"coder", to_text(array.coder->kind())},
          {"coding", array.coder->to_text()},
          {"places", array.places.size()}};
}

template <typename Bytes>
bool take_hex(const json& text, Bytes& bytes, std::size_t most) {
  if (!text.is_string()) return false;
  const auto& digits = text.get_ref<const std::string&>();
  if (digits.size() % 2 != 0 || digits.size() / 2 > most) return false;
  const auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = digit(digits[i]), low = digit(digits[i + 1]);
    if (high < 0 || low < 0) return false;
    bytes.push_back(static_cast<typename Bytes::value_type>(high << 4 | low));
  }
  return true;
}

bool take_sizes(const json& list, Extents& sizes) {
  const auto found = extents_in(list);
  if (found) sizes = *found;
  return found.has_value();
}

// An array of windows, which has no places.
Result<std::uint64_t> take_windows(const json& from, ChunkedArray& array, std::string_view subject) {
  constexpr std::size_t kFields = 3;
  const bool holds = from.size() == kFields && from.contains("name") && from["name"].is_string() &&
                     from.contains("head") && take_hex(from["head"], array.head, kLargestHead);
  if (!holds) return corrupt("{}: the map of chunks is damaged", subject);
  array.name = printable(from["name"].get<std::string>());
  OK_OR_RETURN(windows, parse_windows(from["windows"], format("{}: {}", subject, array.name)));
  array.windows = std::move(windows);
  return 0;
}

// One array, but for its places; how many these are.
Result<std::uint64_t> take_array(const json& from, ChunkedArray& array, std::string_view subject) {
  static constexpr std::string_view kFields[] = {"name", "shape", "chunks", "element_bytes", "fill",
                                                 "head", "coder", "coding", "places"};
  const auto damaged = [&] { return corrupt("{}: the map of chunks is damaged", subject); };
  if (from.is_object() && from.contains("windows")) return take_windows(from, array, subject);
  if (!from.is_object() || from.size() != std::size(kFields)) return damaged();
  for (const std::string_view field : kFields) {
    if (!from.contains(field)) return damaged();
  }
  const bool holds = from["name"].is_string() && take_sizes(from["shape"], array.shape) &&
                     take_sizes(from["chunks"], array.chunks) && from["element_bytes"].is_number_unsigned() &&
                     from["element_bytes"].get<std::uint64_t>() <= kLargestElement &&
                     take_hex(from["fill"], array.fill, kLargestElement) &&
                     take_hex(from["head"], array.head, kLargestHead) && from["coder"].is_string() &&
                     from["coding"].is_string() && from["places"].is_number_unsigned();
  if (!holds) return damaged();
  array.name = printable(from["name"].get<std::string>());
  array.element_bytes = from["element_bytes"].get<std::uint32_t>();
  OK_OR_RETURN(coder, parse_coder(from["coder"].get<std::string>(), from["coding"].get<std::string>(), array,
                                  format("{}: {}", subject, array.name)));
  array.coder = std::move(coder);
  return from["places"].get<std::uint64_t>();
}

// "name", bytes.
Result<std::vector<ShardPart>> take_parts(const json& from, std::string_view subject) {
  std::vector<ShardPart> parts;
  for (const json& part : from) {
    if (!part.is_array() || part.size() != 2 || !part[0].is_string() || !part[1].is_number_unsigned())
      return corrupt("{}: the map of chunks is damaged", subject);
    parts.push_back({part[0].get<std::string>(), part[1].get<std::uint64_t>()});
  }
  return parts;
}

}  // namespace

std::string_view to_text(ChunkCoder::Kind kind) {
  switch (kind) {
    case ChunkCoder::Kind::plain:
      return "plain";
    case ChunkCoder::Kind::hdf5:
      return "hdf5";
    case ChunkCoder::Kind::record:
      return "record";
    case ChunkCoder::Kind::zarr:
      return "zarr";
    case ChunkCoder::Kind::column:
      return "column";
    case ChunkCoder::Kind::page:
      break;
  }
  return "page";
}

Result<ChunkMap> ChunkMap::create(std::vector<ChunkedArray> arrays, std::uint64_t shard_bytes,
                                  std::string_view subject, std::vector<ShardPart> parts) {
  ChunkMap map;
  if (!parts.empty()) RETURN_IF_ERROR(check_parts(parts, shard_bytes, subject));
  map.parts_ = std::move(parts);
  if (arrays.size() > kMostArrays) return corrupt("{}: has over {} arrays", subject, kMostArrays);
  std::uint64_t begin = 0;
  for (ChunkedArray& is : arrays) {
    Array& array = map.arrays_.emplace_back();
    array.is = std::move(is);
    array.begin = begin;
    const std::string name = format("{}: {}", subject, array.is.name);
    if (array.is.windows) {
      RETURN_IF_ERROR(map.measure_windows(array, name));
    } else {
      RETURN_IF_ERROR(array.is.is_list() ? measure_list(array, name) : measure_grid(array, name));
    }
    RETURN_IF_ERROR(check_places(array, shard_bytes, name));
    if (array.bytes >= kMostBytes - begin) return corrupt("{}: its sizes overflow", name);
    begin += array.bytes;
  }
  map.share_chunks();
  return map;
}

void ChunkMap::share_chunks() {
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, std::size_t> latest;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    Array& array = arrays_[i];
    array.held_as = i;
    if (!array.record || array.is.places.empty()) continue;
    std::size_t& same = latest[{array.record->packing, array.is.places[0].offset, array.held_bytes}];
    // 0 may be another array altogether, which is none of records then, or has other places.
    const bool is_same = same < i && arrays_[same].record && arrays_[same].held_bytes == array.held_bytes &&
                         arrays_[same].record->packing == array.record->packing &&
                         arrays_[same].is.places == array.is.places;
    if (is_same) array.held_as = same;
    if (!is_same) same = i;
  }
}

// REQUIRES: `array` is the last one so far.
Status ChunkMap::measure_windows(Array& array, std::string_view subject) const {
  const Windows& windows = *array.is.windows;
  const auto damaged = [&] { return corrupt("{}: its windows do not fit the arrays", subject); };
  if (array.is.head.size() > kLargestHead || windows.parts.empty()) return damaged();
  for (const Windows::Part& part : windows.parts) {
    if (std::uint64_t{part.array} + 1 >= arrays_.size()) return damaged();
    const ChunkedArray& of = arrays_[part.array].is;
    if (of.is_list() || of.windows || !fits(windows, part, of.shape)) return damaged();
    const auto bytes = product(windows.size, of.element_bytes);
    if (!bytes || *bytes > kLargestChunk || array.row_bytes > kLargestChunk - *bytes) {
      return invalid("{}: a window of it has over 1 GiB", subject);
    }
    array.row_bytes += *bytes;
  }
  const auto rows = product(windows.counts);
  if (!rows || array.unit() > kMostBytes / *rows) return corrupt("{}: its sizes overflow", subject);
  array.bytes = *rows * array.unit();
  return {};
}

bool ChunkMap::has_windows() const {
  return std::any_of(arrays_.begin(), arrays_.end(),
                     [](const Array& array) { return array.is.windows.has_value(); });
}

bool ChunkMap::has_columns() const {
  return std::any_of(arrays_.begin(), arrays_.end(), [](const Array& array) {
    return !array.is.windows && array.is.coder->kind() == ChunkCoder::Kind::column;
  });
}

std::string ChunkMap::encode() const {
  json list = json::array();
  for (const Array& array : arrays_) list.push_back(described(array.is));
  if (!parts_.empty()) {
    json files = json::array();
    for (const ShardPart& part : parts_) files.push_back({part.file, part.bytes});
    list = {{"arrays", std::move(list)}, {"parts", std::move(files)}};
  }
  const std::string text = json_text(list);
  std::string out;
  const auto put = [&out](std::uint64_t value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  put(text.size());
  out += text;
  out.resize((out.size() + 7) / 8 * 8, '\0');
  for (const Array& array : arrays_) {
    for (const StoredChunk& place : array.is.places) {
      put(place.offset);
      put(place.bytes);
      put(place.extra);
    }
  }
  return out;
}

Result<ChunkMap> ChunkMap::parse(std::span<const std::byte> bytes, std::uint64_t shard_bytes,
                                 std::string_view subject) {
  const auto damaged = [&] { return corrupt("{}: the map of chunks is damaged", subject); };
  const std::uint64_t length = bytes.size() < 8 ? 0 : load<std::uint64_t>(bytes, 0);
  if (bytes.size() < 8 || length > bytes.size() - 8) return damaged();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  json list = parse_json<json>(text);
  std::vector<ShardPart> parts;
  if (list.is_object()) {
    if (list.size() != 2 || !list.contains("arrays") || !list.contains("parts") ||
        !list["parts"].is_array() || list["parts"].empty())
      return damaged();
    OK_OR_RETURN(taken, take_parts(list["parts"], subject));
    parts = std::move(taken);
    list = json(std::move(list["arrays"]));
  }
  if (!list.is_array() || list.size() > kMostArrays) return damaged();
  std::uint64_t at = std::min<std::uint64_t>((8 + length + 7) / 8 * 8, bytes.size());
  std::vector<ChunkedArray> arrays;
  for (const json& from : list) {
    ChunkedArray& array = arrays.emplace_back();
    OK_OR_RETURN(places, take_array(from, array, subject));
    if (places > (bytes.size() - at) / kPlaceBytes) return damaged();
    array.places.reserve(places);
    for (std::uint64_t i = 0; i < places; ++i, at += kPlaceBytes) {
      array.places.push_back({.offset = load<std::uint64_t>(bytes, at),
                              .bytes = load<std::uint64_t>(bytes, at + 8),
                              .extra = load<std::uint64_t>(bytes, at + 16)});
    }
  }
  if (at != bytes.size()) return damaged();
  return create(std::move(arrays), shard_bytes, subject, std::move(parts));
}

std::size_t ChunkMap::array_at(std::uint64_t at) const {
  const auto after = std::upper_bound(arrays_.begin(), arrays_.end(), at,
                                      [](std::uint64_t a, const Array& array) { return a < array.begin; });
  return static_cast<std::size_t>(after - arrays_.begin()) - 1;
}

std::uint64_t ChunkMap::block(std::uint64_t at) const {
  constexpr int kArrayShift = 48;
  const std::size_t number = array_at(at);
  const Array& array = arrays_[number];
  std::uint64_t block = 0;
  if (array.is.windows) {
    const Windows::Part& part = array.is.windows->parts[0];
    const Array& of = arrays_[part.array];
    const Extents begin = array.is.windows->begin_of(part, (at - array.begin) / array.unit());
    for (std::size_t d = 0; d < begin.size(); ++d) block = block * of.counts[d] + begin[d] / of.is.chunks[d];
    return std::uint64_t{part.array} << kArrayShift | block;
  }
  if (array.is.is_list()) {
    const auto& begins = array.page_begins;
    block = static_cast<std::uint64_t>(std::upper_bound(begins.begin(), begins.end(), at - array.begin) -
                                       begins.begin()) -
            1;
  } else {
    block = (at - array.begin) / array.unit() / array.is.chunks[0];
  }
  return std::uint64_t{number} << kArrayShift | block;
}

}  // namespace stoker::formats
