// The values of one column chunk of a Parquet file, put together. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"
#include "format/parquet/footer.h"
#include "format/parquet/leaf.h"

namespace stoker::formats {

struct LeafReading {
  std::string_view subject;  ///< starts every error text
  std::uint64_t* left;       ///< bytes of memory that may still be taken
};

/// `bytes` are all of the chunk, which is of a row group of so many rows. Fails as ParquetFile::read_leaf
/// does.
Result<ParquetValues> read_leaf_chunk(const ParquetChunk& chunk, const SchemaLeaf& leaf, std::uint64_t rows,
                                      std::span<const std::byte> bytes, const LeafReading& reading);

}  // namespace stoker::formats
