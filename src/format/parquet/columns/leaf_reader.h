// The values of one column chunk of a Parquet file, put together. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/parquet/footer.h"
#include "format/parquet/leaf.h"
#include "format/parquet/page_index.h"
#include "format/parquet/pages/chunk_pages.h"

namespace stoker::formats {

struct LeafReading {
  const ParquetChunk& chunk;
  const SchemaLeaf& leaf;
  std::uint64_t rows;        ///< of the row group
  std::string_view subject;  ///< starts every error text
  std::uint64_t* left;       ///< bytes of memory that may still be taken
};

/// Reads what is in `pages`, which are the column chunk, into `values`, in place of what they were. Fails as
/// ParquetFile::read_leaf does.
Status read_leaf_chunk(const LeafReading& reading, ChunkPages& pages, ParquetValues& values);

/// The same of a leaf in no list, whose pages `pages` tells, but for those that are not wanted: their rows
/// are missing. Corrupt, too, where there are other pages than it tells.
struct SomePages {
  const ReadAt& read;
  std::span<const IndexedPage> pages;
  const std::vector<bool>& are_wanted;  ///< one for each
};
Status read_leaf_pages(const LeafReading& reading, const SomePages& some, ParquetValues& values);

}  // namespace stoker::formats
