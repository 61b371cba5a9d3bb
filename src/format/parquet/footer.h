// What a Parquet file's footer says. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "format/parquet/schema.h"

namespace stoker::formats {

/// As the file says it: nothing is checked.
struct ParquetStatistics {
  std::optional<std::string> least, most;          ///< ordered as the leaf's type asks
  std::optional<std::string> old_least, old_most;  ///< compared as signed numbers or bytes, whatever they are
  std::optional<std::int64_t> missing;
};

/// Where a structure lies that the footer does not have itself.
struct ParquetPlace {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;  ///< 0: there is none
};

/// Where one leaf of one row group lies.
struct ParquetChunk {
  std::int64_t type = -1;
  std::int64_t codec = 0;
  std::int64_t values = 0;  ///< with those that are missing
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
  bool is_elsewhere = false;  ///< in another file
  bool is_encrypted = false;
  ParquetStatistics statistics;
  ParquetPlace offset_index;  ///< where its pages lie
  ParquetPlace column_index;  ///< statistics of each
};

struct ParquetGroup {
  std::uint64_t rows = 0;
  std::vector<ParquetChunk> chunks;  ///< one for each leaf
};

struct ParquetFooter {
  std::uint64_t rows = 0;
  std::vector<SchemaLeaf> leaves;
  std::vector<ParquetGroup> groups;
  /// For each leaf whether the file says that its statistics are ordered as its type asks.
  std::vector<bool> has_order;
  /// Written by a program that counted no dictionary's header among a chunk's bytes.
  bool has_short_chunks = false;
};

/// Corrupt, beginning with `subject`, for what does not hold. Columns of a group are the leaves, in their
/// order.
Result<ParquetFooter> read_footer(std::span<const std::byte> bytes, std::string_view subject);

}  // namespace stoker::formats
