#include "codec/chunks/chunk_map.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "base/encode.h"
#include "base/json/json.h"
#include "codec/chunks/windows_internal.h"
#include "codec/load.h"

namespace stoker::codec {

namespace {

using nlohmann::json;

constexpr std::size_t kPlaceBytes = 24;
constexpr std::size_t kMaxArrays = 4096;
constexpr std::uint64_t kMaxChunks = std::uint64_t{1} << 27;
constexpr std::uint64_t kMaxMapBytes = std::uint64_t{1} << 62;
constexpr std::uint64_t kMaxHeadBytes = 1u << 16;
constexpr std::uint64_t kMaxElementBytes = 1u << 20;

Status too_large(std::string_view subject, std::uint64_t bytes) {
  return invalid("{}: its chunks unpack to {} bytes each (at most 1 GiB is supported in place)", subject,
                 bytes);
}

// The stride of a member's elements is the record size.
Status measure_record(ChunkMap::Array& array, std::string_view subject) {
  const std::uint64_t member = array.record->member_bytes;
  const bool fits = array.chunk_bytes == member ||
                    std::find(array.strides.begin(), array.strides.end(), member) != array.strides.end();
  if (!fits) return corrupt("{}: its chunks do not hold whole records", subject);
  for (std::uint64_t& stride : array.strides) {
    if (stride >= member) stride = stride / member * array.record->bytes;
  }
  array.decoded_chunk_bytes = array.spec.coder->decoded_bytes(array.chunk_bytes);
  return {};
}

// Computes the sizes of a grid array and checks the number of chunks.
Status measure_grid(ChunkMap::Array& array, std::string_view subject) {
  const ChunkedArray& spec = array.spec;
  const auto damaged = [&](std::string_view what) { return corrupt("{}: {}", subject, what); };
  const bool has_sizes = !spec.shape.empty() && spec.shape.size() <= kMaxDimensions &&
                         spec.chunks.size() == spec.shape.size() && spec.element_bytes > 0 &&
                         spec.element_bytes <= kMaxElementBytes && spec.fill.size() == spec.element_bytes;
  if (!has_sizes || std::find(spec.chunks.begin(), spec.chunks.end(), 0u) != spec.chunks.end())
    return damaged("its sizes do not match");
  const auto row = product(std::span(spec.shape).subspan(1), spec.element_bytes);
  const auto chunk = product(spec.chunks, spec.element_bytes);
  if (chunk && *chunk > kMaxChunkBytes) return too_large(subject, *chunk);
  if (chunk && spec.coder && spec.coder->decoded_bytes(*chunk) > kMaxChunkBytes)
    return too_large(subject, spec.coder->decoded_bytes(*chunk));
  if (!row || !chunk || *row + spec.head.size() > kMaxMapBytes / std::max<std::uint64_t>(1, spec.shape[0]))
    return damaged("its sizes overflow");
  array.row_bytes = *row;
  array.chunk_bytes = *chunk;
  array.bytes = spec.shape[0] * array.row_stride();
  std::uint64_t chunks = 1;
  for (std::size_t d = 0; d < spec.shape.size(); ++d) {
    array.counts.push_back(spec.shape[d] / spec.chunks[d] + (spec.shape[d] % spec.chunks[d] != 0));
    if (array.counts[d] > kMaxChunks) return damaged("has too many chunks");
    chunks *= array.counts[d];
    if (chunks > kMaxChunks) return damaged("has too many chunks");
  }
  if (chunks != spec.stored_chunks.size()) return damaged("some of its chunks are missing");
  array.strides = c_strides(spec.chunks, spec.element_bytes);
  array.decoded_chunk_bytes = array.chunk_bytes;
  if (spec.coder) array.record = spec.coder->record();
  return array.record ? measure_record(array, subject) : Status();
}

Status measure_list(ChunkMap::Array& array, std::string_view subject) {
  array.page_begins.push_back(0);
  for (const StoredChunk& page : array.spec.stored_chunks) {
    if (page.unpacked() > kMaxChunkBytes) return too_large(subject, page.unpacked());
    array.page_begins.push_back(array.page_begins.back() + page.unpacked());
  }
  array.bytes = array.page_begins.back();
  array.row_bytes = 1;
  const bool holds = array.spec.element_bytes == 1 && array.spec.head.empty() &&
                     array.spec.shape.size() == 1 && array.spec.shape[0] == array.bytes &&
                     array.bytes < kMaxMapBytes;
  return holds ? Status() : corrupt("{}: its pages do not add up", subject);
}

Status check_places(const ChunkMap::Array& array, std::uint64_t shard_bytes, std::string_view subject) {
  for (std::size_t i = 0; i < array.spec.stored_chunks.size(); ++i) {
    const StoredChunk& place = array.spec.stored_chunks[i];
    if (place.is_missing() && !array.spec.is_list()) continue;
    if (place.bytes > shard_bytes || place.offset > shard_bytes - place.bytes)
      return corrupt("{}: chunk {} is beyond the end of the file", subject, i);
    const std::uint64_t bytes = array.spec.is_list() ? place.unpacked() : array.chunk_bytes;
    const bool is_column =
        !array.spec.is_list() && !array.spec.windows && array.spec.coder->kind() == ChunkCoder::Kind::column;
    const std::uint64_t most = is_column ? max_column_bytes(bytes / array.spec.element_bytes)
                                         : max_packed_bytes(array.spec.coder->decoded_bytes(bytes));
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

json array_to_json(const ChunkedArray& array) {
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
          {"places", array.stored_chunks.size()}};
}

template <typename Bytes>
bool parse_hex(const json& text, Bytes& bytes, std::size_t most) {
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

bool parse_sizes(const json& list, Extents& sizes) {
  const auto found = parse_extents(list);
  if (found) sizes = *found;
  return found.has_value();
}

// An array of windows, which has no stored chunks.
Result<std::uint64_t> parse_windows_array(const json& from, ChunkedArray& array, std::string_view subject) {
  constexpr std::size_t kFields = 3;
  const bool holds = from.size() == kFields && from.contains("name") && from["name"].is_string() &&
                     from.contains("head") && parse_hex(from["head"], array.head, kMaxHeadBytes);
  if (!holds) return corrupt("{}: the chunk map is damaged", subject);
  array.name = printable(from["name"].get<std::string>());
  STOKER_ASSIGN_OR_RETURN(windows, parse_windows(from["windows"], format("{}: {}", subject, array.name)));
  array.windows = std::move(windows);
  return 0;
}

// Parses one array without its stored chunks, and returns their number.
Result<std::uint64_t> parse_array(const json& from, ChunkedArray& array, CoderParser coders,
                                  std::string_view subject) {
  static constexpr std::string_view kFields[] = {"name", "shape", "chunks", "element_bytes", "fill",
                                                 "head", "coder", "coding", "places"};
  const auto damaged = [&] { return corrupt("{}: the chunk map is damaged", subject); };
  if (from.is_object() && from.contains("windows")) return parse_windows_array(from, array, subject);
  if (!from.is_object() || from.size() != std::size(kFields)) return damaged();
  for (const std::string_view field : kFields) {
    if (!from.contains(field)) return damaged();
  }
  const bool holds = from["name"].is_string() && parse_sizes(from["shape"], array.shape) &&
                     parse_sizes(from["chunks"], array.chunks) &&
                     from["element_bytes"].is_number_unsigned() &&
                     from["element_bytes"].get<std::uint64_t>() <= kMaxElementBytes &&
                     parse_hex(from["fill"], array.fill, kMaxElementBytes) &&
                     parse_hex(from["head"], array.head, kMaxHeadBytes) && from["coder"].is_string() &&
                     from["coding"].is_string() && from["places"].is_number_unsigned();
  if (!holds) return damaged();
  array.name = printable(from["name"].get<std::string>());
  array.element_bytes = from["element_bytes"].get<std::uint32_t>();
  STOKER_ASSIGN_OR_RETURN(coder, coders(from["coder"].get<std::string>(), from["coding"].get<std::string>(),
                                        array, format("{}: {}", subject, array.name)));
  array.coder = std::move(coder);
  return from["places"].get<std::uint64_t>();
}

// "name", bytes.
Result<std::vector<ShardPart>> parse_parts(const json& from, std::string_view subject) {
  std::vector<ShardPart> parts;
  for (const json& part : from) {
    if (!part.is_array() || part.size() != 2 || !part[0].is_string() || !part[1].is_number_unsigned())
      return corrupt("{}: the chunk map is damaged", subject);
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
  if (!parts.empty()) STOKER_RETURN_IF_ERROR(check_parts(parts, shard_bytes, subject));
  map.parts_ = std::move(parts);
  if (arrays.size() > kMaxArrays) return corrupt("{}: has over {} arrays", subject, kMaxArrays);
  std::uint64_t begin = 0;
  for (ChunkedArray& spec : arrays) {
    Array& array = map.arrays_.emplace_back();
    array.spec = std::move(spec);
    array.begin = begin;
    const std::string name = format("{}: {}", subject, array.spec.name);
    if (array.spec.windows) {
      STOKER_RETURN_IF_ERROR(map.measure_windows(array, name));
    } else {
      STOKER_RETURN_IF_ERROR(array.spec.is_list() ? measure_list(array, name) : measure_grid(array, name));
    }
    STOKER_RETURN_IF_ERROR(check_places(array, shard_bytes, name));
    if (array.bytes >= kMaxMapBytes - begin) return corrupt("{}: its sizes overflow", name);
    begin += array.bytes;
  }
  map.find_shared_chunks();
  return map;
}

void ChunkMap::find_shared_chunks() {
  std::map<std::tuple<std::string, std::uint64_t, std::uint64_t>, std::size_t> latest;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    Array& array = arrays_[i];
    array.chunk_owner = i;
    if (!array.record || array.spec.stored_chunks.empty()) continue;
    std::size_t& same =
        latest[{array.record->packing, array.spec.stored_chunks[0].offset, array.decoded_chunk_bytes}];
    // Entry 0 may be an unrelated array: without records, or with different chunks.
    const bool is_same = same < i && arrays_[same].record &&
                         arrays_[same].decoded_chunk_bytes == array.decoded_chunk_bytes &&
                         arrays_[same].record->packing == array.record->packing &&
                         arrays_[same].spec.stored_chunks == array.spec.stored_chunks;
    if (is_same) array.chunk_owner = same;
    if (!is_same) same = i;
  }
}

// REQUIRES: `array` is the last array.
Status ChunkMap::measure_windows(Array& array, std::string_view subject) const {
  const Windows& windows = *array.spec.windows;
  const auto damaged = [&] { return corrupt("{}: its windows do not fit the arrays", subject); };
  if (array.spec.head.size() > kMaxHeadBytes || windows.parts.empty()) return damaged();
  for (const Windows::Part& part : windows.parts) {
    if (std::uint64_t{part.array} + 1 >= arrays_.size()) return damaged();
    const ChunkedArray& of = arrays_[part.array].spec;
    if (of.is_list() || of.windows || !fits(windows, part, of.shape)) return damaged();
    const auto bytes = product(windows.size, of.element_bytes);
    if (!bytes || *bytes > kMaxChunkBytes || array.row_bytes > kMaxChunkBytes - *bytes) {
      return invalid("{}: a window of it has over 1 GiB", subject);
    }
    array.row_bytes += *bytes;
  }
  const auto rows = product(windows.counts);
  if (!rows || array.row_stride() > kMaxMapBytes / *rows) return corrupt("{}: its sizes overflow", subject);
  array.bytes = *rows * array.row_stride();
  return {};
}

bool ChunkMap::has_windows() const {
  return std::any_of(arrays_.begin(), arrays_.end(),
                     [](const Array& array) { return array.spec.windows.has_value(); });
}

bool ChunkMap::has_columns() const {
  return std::any_of(arrays_.begin(), arrays_.end(), [](const Array& array) {
    return !array.spec.windows && array.spec.coder->kind() == ChunkCoder::Kind::column;
  });
}

std::string ChunkMap::encode() const {
  json list = json::array();
  for (const Array& array : arrays_) list.push_back(array_to_json(array.spec));
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
    for (const StoredChunk& place : array.spec.stored_chunks) {
      put(place.offset);
      put(place.bytes);
      put(place.extra);
    }
  }
  return out;
}

Result<ChunkMap> ChunkMap::parse(std::span<const std::byte> bytes, std::uint64_t shard_bytes,
                                 std::string_view subject, CoderParser coders) {
  const auto damaged = [&] { return corrupt("{}: the chunk map is damaged", subject); };
  const std::uint64_t length = bytes.size() < 8 ? 0 : load<std::uint64_t>(bytes, 0);
  if (bytes.size() < 8 || length > bytes.size() - 8) return damaged();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  json list = parse_json<json>(text);
  std::vector<ShardPart> parts;
  if (list.is_object()) {
    if (list.size() != 2 || !list.contains("arrays") || !list.contains("parts") ||
        !list["parts"].is_array() || list["parts"].empty())
      return damaged();
    STOKER_ASSIGN_OR_RETURN(parsed_parts, parse_parts(list["parts"], subject));
    parts = std::move(parsed_parts);
    list = json(std::move(list["arrays"]));
  }
  if (!list.is_array() || list.size() > kMaxArrays) return damaged();
  std::uint64_t at = std::min<std::uint64_t>((8 + length + 7) / 8 * 8, bytes.size());
  std::vector<ChunkedArray> arrays;
  for (const json& from : list) {
    ChunkedArray& array = arrays.emplace_back();
    STOKER_ASSIGN_OR_RETURN(stored_chunks, parse_array(from, array, coders, subject));
    if (stored_chunks > (bytes.size() - at) / kPlaceBytes) return damaged();
    array.stored_chunks.reserve(stored_chunks);
    for (std::uint64_t i = 0; i < stored_chunks; ++i, at += kPlaceBytes) {
      array.stored_chunks.push_back({.offset = load<std::uint64_t>(bytes, at),
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
  if (array.spec.windows) {
    const Windows::Part& part = array.spec.windows->parts[0];
    const Array& of = arrays_[part.array];
    const Extents begin = array.spec.windows->window_begin(part, (at - array.begin) / array.row_stride());
    for (std::size_t d = 0; d < begin.size(); ++d)
      block = block * of.counts[d] + begin[d] / of.spec.chunks[d];
    return std::uint64_t{part.array} << kArrayShift | block;
  }
  if (array.spec.is_list()) {
    const auto& begins = array.page_begins;
    block = static_cast<std::uint64_t>(std::upper_bound(begins.begin(), begins.end(), at - array.begin) -
                                       begins.begin()) -
            1;
  } else {
    block = (at - array.begin) / array.row_stride() / array.spec.chunks[0];
  }
  return std::uint64_t{number} << kArrayShift | block;
}

// Sizes of a map's chunks: totals, and the chunks that a cache must hold together.

namespace {

// Upper bound of the chunks that a window touches in any position.
std::uint64_t max_chunks(const Windows& windows, const Windows::Part& part, const ChunkedArray& of) {
  std::uint64_t chunks = 1;
  for (std::size_t d = 0; d < of.chunks.size(); ++d) {
    const std::uint64_t chunk = of.chunks[d];
    const bool begins_with_chunks = part.begin[d] % chunk == 0 && windows.step[d] % chunk == 0;
    const std::uint64_t before = begins_with_chunks ? 0 : chunk - 1;
    const std::uint64_t all = of.shape[d] / chunk + (of.shape[d] % chunk != 0);
    chunks *= std::min(all, (before + windows.size[d] + chunk - 1) / chunk);
  }
  return chunks;
}

}  // namespace

bool ChunkMap::shares_chunks() const {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (arrays_[i].chunk_owner != i) return true;
  }
  return false;
}

ChunkMap::ReadKey ChunkMap::read_key(std::uint64_t at) const {
  if (at >= bytes()) return {arrays_.size(), 0, at};
  const Array& array = arrays_[array_at(at)];
  return {array.chunk_owner, (at - array.begin) / array.row_stride(), at};
}

std::uint64_t ChunkMap::cache_bytes_in_read_order() const {
  std::uint64_t most = max_window_bytes();
  for (const Array& array : arrays_) {
    if (!array.record || array.chunk_owner == static_cast<std::size_t>(&array - arrays_.data())) continue;
    std::uint64_t bytes = array.decoded_chunk_bytes;  // all chunks of a row
    for (std::size_t d = 1; d < array.counts.size(); ++d) bytes *= array.counts[d];
    most = std::max(most, bytes);
  }
  return most;
}

ChunkMap::Totals ChunkMap::totals() const {
  Totals sum;
  for (const Array& array : arrays_) {
    for (const StoredChunk& place : array.spec.stored_chunks) {
      if (place.is_missing()) continue;
      const std::uint64_t bytes = array.spec.is_list() ? place.unpacked() : array.chunk_bytes;
      ++sum.chunks;
      sum.packed += place.bytes;
      sum.unpacked += bytes;
      sum.largest = std::max(sum.largest, bytes);
    }
  }
  return sum;
}

std::uint64_t ChunkMap::max_window_bytes() const {
  std::uint64_t largest = 0;
  for (const Array& array : arrays_) {
    std::uint64_t bytes = 0;
    std::set<std::size_t> counted;
    for (const Windows::Part& part : array.spec.windows.value_or(Windows()).parts) {
      const Array& of = arrays_[part.array];
      if (counted.insert(of.chunk_owner).second) bytes += of.decoded_chunk_bytes;
    }
    largest = std::max(largest, bytes);
  }
  return largest;
}

std::uint64_t ChunkMap::max_sample_chunk_bytes() const {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 62;
  std::set<std::uint32_t> shown;  // arrays of windows, which are not samples themselves
  std::uint64_t most = 0;
  for (auto array = arrays_.rbegin(); array != arrays_.rend(); ++array) {
    std::uint64_t bytes = 0;
    if (array->spec.windows) {
      for (const Windows::Part& part : array->spec.windows->parts) {
        shown.insert(part.array);
        const Array& of = arrays_[part.array];
        bytes = std::min(kMax, bytes + of.chunk_bytes * max_chunks(*array->spec.windows, part, of.spec));
      }
    } else if (array->spec.is_list()) {
      for (const StoredChunk& page : array->spec.stored_chunks) bytes = std::max(bytes, page.unpacked());
    } else if (!shown.contains(static_cast<std::uint32_t>(arrays_.rend() - array - 1))) {
      // One chunk in one dimension, otherwise all chunks of a row.
      bytes = array->chunk_bytes;
      for (std::size_t d = 1; d < array->counts.size(); ++d) bytes *= array->counts[d];
    }
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace stoker::codec
