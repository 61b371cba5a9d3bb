// Reads the values of one column chunk of a Parquet file. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "parquet/pages/chunk_pages.h"
#include "parquet/schema/footer.h"
#include "parquet/schema/leaf.h"
#include "parquet/schema/page_index.h"
#include "stoker/status.h"

namespace stoker::parquet {

struct LeafReading {
  const ParquetChunk& chunk;
  const SchemaLeaf& leaf;
  std::uint64_t rows;        ///< of the row group
  std::string_view subject;  ///< starts every error text
  std::uint64_t* left;       ///< remaining bytes of memory
};

/// Replaces `values` by the values of the column chunk in `pages`. Fails as ParquetFile::read_leaf does.
Status read_leaf_chunk(const LeafReading& reading, ChunkPages& pages, ParquetValues& values);

/// The same for a leaf in no list, reading only the selected pages of its index: the other rows are null.
/// Corrupt, too, if the pages do not match the index.
struct PageSelection {
  const archive::ReadAt& read;
  std::span<const IndexedPage> pages;
  const std::vector<bool>& is_selected;  ///< one per page
};
Status read_selected_pages(const LeafReading& reading, const PageSelection& some, ParquetValues& values);

}  // namespace stoker::parquet
