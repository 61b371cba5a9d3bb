// A dataset as an index section holds it: where its chunks lie, so that training needs no libhdf5.
#include <algorithm>

#include "format/hdf5/coder.h"
#include "format/hdf5/parts.h"

namespace stoker::formats {

namespace {

constexpr std::uint64_t kMostChunks = std::uint64_t{1} << 26;

}  // namespace

Result<ChunkedArray> Hdf5Dataset::chunked() const {
  using Layout = hdf5::Description::Layout;
  const hdf5::Description& about = parts_->about;
  const std::string& subject = parts_->subject;
  RETURN_IF_ERROR(check_elements());
  if (about.layout == Layout::parts) return invalid("{}: is virtual", subject);
  if (about.layout == Layout::inline_ || about.shape.empty())
    return invalid("{}: lies in the file's header", subject);
  if (about.layout == Layout::contiguous && about.offset == hdf5::kNoAddress)
    return invalid("{}: was never written", subject);
  ChunkedArray array{.name = format("dataset '{}'", printable(about.path)),
                     .shape = about.shape,
                     .chunks = about.chunks,
                     .element_bytes = about.type.bytes,
                     .fill = about.fill,
                     .head = {},
                     .coder = nullptr,
                     .places = {}};
  array.fill.resize(about.type.bytes);
  const std::size_t unit = about.order == ByteOrder::big ? about.type.swap_unit() : 1;
  if (about.layout == Layout::contiguous) {
    constexpr std::uint64_t kPiece = 1u << 20;
    const std::uint64_t row = std::max<std::uint64_t>(1, parts_->stored_bytes(parts_->row_bytes));
    const std::uint64_t all = parts_->stored_bytes(parts_->bytes);
    const std::uint64_t rows =
        std::clamp<std::uint64_t>(kPiece / row, 1, std::max<std::uint64_t>(1, shape()[0]));
    array.chunks = about.shape;
    for (std::uint64_t& size : array.chunks) size = std::max<std::uint64_t>(1, size);
    array.chunks[0] = rows;
    for (std::uint64_t at = 0; at < all; at += rows * row)
      array.places.push_back({about.offset + at, std::min(rows * row, all - at), 0});
    array.coder = about.member ? hdf5::chunk_coder({}, unit, about.member) : plain_coder(unit);
    return array;
  }
  std::uint64_t chunks = 1;
  for (const std::uint64_t count : parts_->counts) {
    chunks = count > kMostChunks ? kMostChunks + 1 : std::min(kMostChunks + 1, chunks * count);
  }
  if (chunks > kMostChunks) return invalid("{}: has over {} chunks", subject, kMostChunks);
  array.places.resize(chunks);
  for (const hdf5::ChunkPlace& place : about.places) {
    if (place.number >= chunks) return corrupt("{}: has a chunk {}", subject, place.number);
    array.places[place.number] = {place.offset, place.bytes, place.skipped};
  }
  array.coder = hdf5::chunk_coder(about.filters, unit, about.member);
  return array;
}

Result<std::vector<Hdf5Dataset::VirtualPiece>> Hdf5Dataset::virtual_pieces() const {
  std::vector<VirtualPiece> pieces;
  if (parts_->about.layout != hdf5::Description::Layout::parts) return pieces;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < parts_->sources.size(); ++i) {
    const Parts::Source& source = parts_->sources[i];
    if (source.rows == 0) continue;
    if (source.first_row != next) break;
    next += source.rows;
    OK_OR_RETURN(array, source.dataset->chunked());
    pieces.push_back(
        {parts_->about.parts[i].file, source.first_row, source.rows, source.source_row, std::move(array)});
  }
  if (next != rows()) return invalid("{}: is virtual, and row {} lies in no file", parts_->subject, next);
  return pieces;
}

}  // namespace stoker::formats
