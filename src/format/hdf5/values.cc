// Values of different lengths: a dataset's elements are references (bytes or items u32, address of a heap
// u64, number in it u32), the values lie in the heaps as they are.
#include <algorithm>

#include "format/chunked/coders.h"
#include "format/hdf5/heap.h"
#include "format/hdf5/parts.h"
#include "format/load.h"

namespace stoker::formats {

namespace {

constexpr std::uint64_t kMostVarying = std::uint64_t{1} << 27;
constexpr std::uint64_t kValuesAtOnce = 1u << 16;
constexpr std::uint64_t kPieceOfHeaps = 1u << 20;

// The stretch of the file in which all of them lie, in pieces that nothing packs. Places are in it from here
// on.
ChunkedArray heaps_around(std::vector<ValueArray::Place>& places, std::string name) {
  std::uint64_t begin = StoredChunk::kMissing;
  std::uint64_t end = 0;
  for (const ValueArray::Place& place : places) {
    if (place.bytes == 0) continue;
    begin = std::min(begin, place.begin);
    end = std::max(end, place.begin + place.bytes);
  }
  const std::uint64_t bytes = end == 0 ? 0 : end - begin;
  for (ValueArray::Place& place : places) place.begin = place.bytes == 0 ? 0 : place.begin - begin;
  ChunkedArray heaps{.name = std::move(name),
                     .shape = {bytes},
                     .chunks = {std::clamp<std::uint64_t>(bytes, 1, kPieceOfHeaps)},
                     .element_bytes = 1,
                     .fill = {std::byte{0}},
                     .head = {},
                     .coder = plain_coder(1),
                     .places = {}};
  for (std::uint64_t at = 0; at < bytes; at += kPieceOfHeaps)
    heaps.places.push_back({begin + at, std::min(kPieceOfHeaps, bytes - at), 0});
  return heaps;
}

}  // namespace

Result<ValueArray> Hdf5Dataset::values() const {
  constexpr std::uint64_t kReference = ElementType::kReferenceBytes;
  const hdf5::Description& about = parts_->about;
  const std::string& subject = parts_->subject;
  if (about.type.kind != ElementType::Kind::varying || about.shape.empty())
    return invalid("{}: has no values of different lengths", subject);
  if (row_bytes() != kReference)
    return invalid("{}: has several values in a row, which is not read", subject);
  if (about.layout == hdf5::Description::Layout::parts)
    return invalid("{}: is virtual and of values of different lengths, which is not read", subject);
  if (rows() > kMostVarying)
    return invalid("{}: has {} values (at most {} are read)", subject, rows(), kMostVarying);
  const std::uint64_t item = about.type.letter == ElementType::kNumbers ? size_of(about.type.of) : 1;
  OK_OR_RETURN(heaps, hdf5::GlobalHeaps::open(parts_->file, about.heap_base, subject));
  ValueArray values;
  values.order = about.order_of_values;
  std::vector<std::byte> references;
  for (std::uint64_t row = 0; row < rows(); row += kValuesAtOnce) {
    references.resize(std::min(kValuesAtOnce, rows() - row) * kReference);
    RETURN_IF_ERROR(read_elements(row, references.size() / kReference, references));
    for (std::size_t at = 0; at < references.size(); at += kReference) {
      const std::uint64_t bytes = load<std::uint32_t>(references, at) * item;
      ValueArray::Place& place = values.places.emplace_back();
      if (bytes == 0) continue;
      OK_OR_RETURN(object, heaps.find(load<std::uint64_t>(references, at + 4),
                                      load<std::uint32_t>(references, at + 12)));
      if (bytes > object.bytes) {
        return corrupt("{}: value {} has {} bytes, its heap has {} for it", subject, values.places.size() - 1,
                       bytes, object.bytes);
      }
      place = {object.offset, bytes};
    }
  }
  values.array = heaps_around(values.places, format("values of dataset '{}'", printable(about.path)));
  return values;
}

}  // namespace stoker::formats
