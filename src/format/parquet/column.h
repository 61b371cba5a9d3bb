// The values of one column chunk of a Parquet file. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "format/parquet/parquet.h"

namespace stoker::formats {

struct ColumnReading {
  std::string_view subject;  ///< starts every error text
  std::uint64_t* left;       ///< bytes of values that may still be taken
};

/// Appends the chunk's values to `values`. Fails as ParquetFile::read does.
Status read_column_chunk(const ParquetFile::Chunk& chunk, std::span<const std::byte> bytes,
                         const ColumnReading& reading, std::vector<std::string>& values);

}  // namespace stoker::formats
