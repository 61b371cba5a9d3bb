#include "codec/chunks/chunk_reader.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "codec/filters/filters.h"

namespace stoker::codec {

namespace {

constexpr int kArrayShift = 40;  // fewer chunks than 2^27 each, and fewer arrays than 2^12

}  // namespace

ChunkReader::ChunkReader(const ChunkMap& map, std::shared_ptr<ChunkCache> cache, std::string subject,
                         CacheContent keep)
    : map_(map),
      cache_(std::move(cache)),
      subject_(std::move(subject)),
      owner_(cache_->new_owner()),
      keep_(keep) {}

ChunkReader::~ChunkReader() { cache_->evict(owner_); }

// Returns an empty buffer for an unwritten chunk.
Result<Buffer> ChunkReader::load(const ShardFile& file, const Array& array, std::uint64_t number) const {
  const StoredChunk& place = array.spec.stored_chunks[number];
  if (place.is_missing()) return Buffer();
  const std::string where = format("{}: {}: chunk {}", subject_, array.spec.name, number);
  Buffer stored(place.bytes);
  if (stored.bytes().size() != place.bytes)
    return unavailable("{}: no memory for {} bytes", where, place.bytes);
  STOKER_RETURN_IF_ERROR(file.read_at(place.offset, stored.bytes()).with_context(where));
  const std::uint64_t bytes = array.spec.is_list() ? place.unpacked() : array.chunk_bytes;
  STOKER_ASSIGN_OR_RETURN(elements, array.spec.coder->decode(place, bytes, stored.bytes(), where));
  const std::uint64_t expected = array.spec.is_list() ? bytes : array.decoded_chunk_bytes;
  if (elements.bytes().size() != expected)
    return corrupt("{}: unpacks to {} bytes, expected {}", where, elements.bytes().size(), expected);
  if (!array.record || holds_records(array)) return std::move(elements);
  Buffer member(bytes);
  if (member.bytes().size() != bytes) return unavailable("{}: no memory for {} bytes", where, bytes);
  copy_box({elements.bytes().data() + array.record->offset, array.strides},
           {member.bytes().data(), c_strides(array.spec.chunks, array.spec.element_bytes)}, array.spec.chunks,
           array.spec.element_bytes);
  if (array.record->swap_unit > 1) swap_bytes(member.bytes(), array.record->swap_unit);
  return member;
}

Result<ChunkCache::Chunk> ChunkReader::chunk(const ShardFile& file, std::size_t array,
                                             std::uint64_t number) const {
  const bool is_shared = holds_records(map_.arrays()[array]);
  const std::uint64_t chunk_owner = is_shared ? map_.arrays()[array].chunk_owner : array;
  return cache_->get({owner_, chunk_owner << kArrayShift | number},
                     [&] { return load(file, map_.arrays()[array], number); });
}

Status ChunkReader::read(const ShardFile& file, std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > map_.bytes() || out.size() > map_.bytes() - offset)
    return corrupt("{}: an offset of the index is beyond its end", subject_);
  while (!out.empty()) {
    const std::size_t number = map_.array_at(offset);
    const Array& array = map_.arrays()[number];
    const std::uint64_t at = offset - array.begin;
    const auto part = out.first(std::min<std::uint64_t>(out.size(), array.bytes - at));
    if (array.spec.is_list()) {
      STOKER_RETURN_IF_ERROR(read_pages(file, number, at, part));
    } else if (array.spec.shape.size() == 1 && array.spec.head.empty() && !array.spec.windows &&
               !holds_records(array)) {
      STOKER_RETURN_IF_ERROR(read_elements(file, number, at, part));
    } else {
      STOKER_RETURN_IF_ERROR(read_rows(file, number, at, part));
    }
    out = out.subspan(part.size());
    offset += part.size();
  }
  return {};
}

Status ChunkReader::read_pages(const ShardFile& file, std::size_t number, std::uint64_t at,
                               std::span<std::byte> out) const {
  const auto& begins = map_.arrays()[number].page_begins;
  while (!out.empty()) {
    const auto page =
        static_cast<std::uint64_t>(std::upper_bound(begins.begin(), begins.end(), at) - begins.begin()) - 1;
    STOKER_ASSIGN_OR_RETURN(held, chunk(file, number, page));
    const std::uint64_t within = at - begins[page];
    const std::size_t now = std::min<std::uint64_t>(out.size(), held->bytes().size() - within);
    std::memcpy(out.data(), held->bytes().data() + within, now);
    out = out.subspan(now);
    at += now;
  }
  return {};
}

// A one-dimensional array, whose chunks are contiguous in the result.
Status ChunkReader::read_elements(const ShardFile& file, std::size_t number, std::uint64_t at,
                                  std::span<std::byte> out) const {
  const Array& array = map_.arrays()[number];
  while (!out.empty()) {
    const std::uint64_t within = at % array.chunk_bytes;
    const auto part = out.first(std::min<std::uint64_t>(out.size(), array.chunk_bytes - within));
    STOKER_ASSIGN_OR_RETURN(held, chunk(file, number, at / array.chunk_bytes));
    if (!held->bytes().empty()) {
      std::memcpy(part.data(), held->bytes().data() + within, part.size());
    } else {
      for (std::size_t i = 0; i < part.size(); ++i)
        part[i] = array.spec.fill[(within + i) % array.spec.fill.size()];
    }
    out = out.subspan(part.size());
    at += part.size();
  }
  return {};
}

Status ChunkReader::read_rows(const ShardFile& file, std::size_t number, std::uint64_t at,
                              std::span<std::byte> out) const {
  const Array& array = map_.arrays()[number];
  const std::uint64_t head = array.spec.head.size();
  std::vector<std::byte> whole;
  while (!out.empty()) {
    const std::uint64_t row = at / array.row_stride();
    const std::uint64_t within = at % array.row_stride();
    std::size_t now = 0;
    if (within < head) {
      now = std::min<std::uint64_t>(out.size(), head - within);
      std::memcpy(out.data(), array.spec.head.data() + within, now);
    } else if (within == head && out.size() >= array.row_bytes) {
      now = array.row_bytes;
      STOKER_RETURN_IF_ERROR(read_row(file, number, row, out.first(now)));
    } else {
      whole.resize(array.row_bytes);
      STOKER_RETURN_IF_ERROR(read_row(file, number, row, whole));
      now = std::min<std::uint64_t>(out.size(), array.row_stride() - within);
      std::memcpy(out.data(), whole.data() + (within - head), now);
    }
    out = out.subspan(now);
    at += now;
  }
  return {};
}

Status ChunkReader::read_row(const ShardFile& file, std::size_t number, std::uint64_t row,
                             std::span<std::byte> out) const {
  const ChunkedArray& array = map_.arrays()[number].spec;
  if (!array.windows) {
    Extents begin(array.shape.size());
    Extents size = array.shape;
    begin[0] = row;
    size[0] = 1;
    return read_box(file, number, {begin, size}, out);
  }
  for (const Windows::Part& part : array.windows->parts) {
    const Box box{array.windows->window_begin(part, row), array.windows->size};
    const auto here = out.first(*product(box.size, map_.arrays()[part.array].spec.element_bytes));
    STOKER_RETURN_IF_ERROR(read_box(file, part.array, box, here));
    out = out.subspan(here.size());
  }
  return {};
}

// Each chunk that the box touches: `visit` gets its number and its place in the grid of chunks.
template <typename Visit>
Status ChunkReader::for_each_chunk(const Array& array, const Box& box, const Visit& visit) {
  const std::size_t dimensions = box.begin.size();
  Extents first(dimensions), last(dimensions);
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (box.size[d] == 0) return {};
    first[d] = box.begin[d] / array.spec.chunks[d];
    last[d] = (box.begin[d] + box.size[d] - 1) / array.spec.chunks[d];
  }
  for (Extents at = first;;) {
    std::uint64_t which = 0;
    for (std::size_t d = 0; d < dimensions; ++d) which = which * array.counts[d] + at[d];
    STOKER_RETURN_IF_ERROR(visit(which, at));
    std::size_t d = dimensions;
    for (; d > 0; --d) {
      if (++at[d - 1] <= last[d - 1]) break;
      at[d - 1] = first[d - 1];
    }
    if (d == 0) return {};
  }
}

Status ChunkReader::read_box(const ShardFile& file, std::size_t number, const Box& box,
                             std::span<std::byte> out) const {
  const Array& array = map_.arrays()[number];
  const std::size_t dimensions = box.begin.size();
  const Extents no_strides(dimensions);
  const Extents strides = c_strides(box.size, array.spec.element_bytes);
  const bool has_records = holds_records(array);
  const bool is_extracted = array.record && !has_records;
  const Extents extracted_strides =
      is_extracted ? c_strides(array.spec.chunks, array.spec.element_bytes) : Extents();
  const Extents& held = is_extracted ? extracted_strides : array.strides;
  const std::size_t swap_unit = has_records ? array.record->swap_unit : 1;
  std::vector<std::byte> turned;  // the final swap of all elements restores it
  if (swap_unit > 1) {
    turned = array.spec.fill;
    swap_bytes(turned, swap_unit);
  }
  const std::vector<std::byte>& fill = swap_unit > 1 ? turned : array.spec.fill;
  Extents size(dimensions);
  const Status status = for_each_chunk(array, box, [&](std::uint64_t which, const Extents& at) -> Status {
    std::uint64_t from = has_records ? array.record->offset : 0;
    std::uint64_t to = 0;
    for (std::size_t d = 0; d < dimensions; ++d) {
      const std::uint64_t chunk_begin = at[d] * array.spec.chunks[d];
      const std::uint64_t begin = std::max(chunk_begin, box.begin[d]);
      size[d] = std::min(chunk_begin + array.spec.chunks[d], box.begin[d] + box.size[d]) - begin;
      from += (begin - chunk_begin) * held[d];
      to += (begin - box.begin[d]) * strides[d];
    }
    STOKER_ASSIGN_OR_RETURN(whole, chunk(file, number, which));  // stays while it is copied
    const bool is_missing = whole->bytes().empty();
    const std::byte* source = is_missing ? fill.data() : whole->bytes().data() + from;
    copy_box({source, is_missing ? no_strides : held}, {out.data() + to, strides}, size,
             array.spec.element_bytes);
    return {};
  });
  if (status.ok() && swap_unit > 1) swap_bytes(out, swap_unit);
  return status;
}

void ChunkReader::will_need(const ShardFile& file, std::uint64_t offset, std::uint64_t length) const {
  if (length == 0 || offset > map_.bytes() || length > map_.bytes() - offset) return;
  const Array& array = map_.arrays()[map_.array_at(offset)];
  const std::uint64_t at = offset - array.begin;
  const std::uint64_t last = std::min(at + length, array.bytes) - 1;
  const auto expect = [&file](const Array& of, std::uint64_t which) {
    const StoredChunk& place = of.spec.stored_chunks[which];
    if (!place.is_missing()) {
      file.will_need(place.offset, place.bytes);
    }
    return Status();
  };
  if (array.spec.windows) {
    for (std::uint64_t row = at / array.row_stride(); row <= last / array.row_stride(); ++row) {
      for (const Windows::Part& part : array.spec.windows->parts) {
        const Array& of = map_.arrays()[part.array];
        const Box box{array.spec.windows->window_begin(part, row), array.spec.windows->size};
        for_each_chunk(of, box, [&](std::uint64_t which, const Extents&) { return expect(of, which); }).ok();
      }
    }
    return;
  }
  const auto chunk_of = [&](std::uint64_t byte) -> std::uint64_t {
    if (!array.spec.is_list()) {
      std::uint64_t per_block = 1;
      for (std::size_t d = 1; d < array.counts.size(); ++d) per_block *= array.counts[d];
      return byte / array.row_stride() / array.spec.chunks[0] * per_block;
    }
    const auto& begins = array.page_begins;
    return static_cast<std::uint64_t>(std::upper_bound(begins.begin(), begins.end(), byte) - begins.begin()) -
           1;
  };
  for (std::uint64_t i = chunk_of(at); i <= chunk_of(last); ++i) expect(array, i).ok();
}

}  // namespace stoker::codec
