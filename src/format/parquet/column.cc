// Columns of numbers as they lie.
#include "format/parquet/column_coder.h"
#include "format/parquet/parquet.h"

namespace stoker::formats {

Result<ChunkedArray> ParquetFile::column(std::size_t leaf, const Groups& groups,
                                         const Elements& elements) const {
  ChunkedArray array;
  array.name = stoker::format("column '{}'", printable(leaves_[leaf].name));
  array.element_bytes = static_cast<std::uint32_t>(size_of(elements.type));
  array.fill = elements.fill;
  array.chunks = {std::max<std::uint64_t>(1, rows(groups.first))};
  array.chunks.insert(array.chunks.end(), elements.row.begin(), elements.row.end());
  array.shape = array.chunks;
  array.shape[0] = 0;
  array.coder = column_coder(footer_.leaves[leaf], elements.type, elements.row, elements.fill);
  for (std::size_t group = groups.first; group < groups.first + groups.count; ++group) {
    const ParquetChunk& chunk = footer_.groups[group].chunks[leaf];
    RETURN_IF_ERROR(check_chunk(chunk, leaf));
    array.shape[0] += rows(group);
    const StoredChunk place{static_cast<std::uint64_t>(chunk.begin), stored_bytes(chunk),
                            rows(group) | static_cast<std::uint64_t>(chunk.codec)
                                              << StoredChunk::kCodecShift};
    array.places.push_back(place);
  }
  return array;
}

}  // namespace stoker::formats
