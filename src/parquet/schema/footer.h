// The parsed footer of a Parquet file. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parquet/schema/schema.h"
#include "stoker/status.h"

namespace stoker::parquet {

/// Statistics as stored, unchecked.
struct ParquetStatistics {
  std::optional<std::string> min, max;  ///< in the order of the leaf's type
  std::optional<std::string> deprecated_min,
      deprecated_max;  ///< always in the order of signed numbers or bytes
  std::optional<std::int64_t> null_count;
};

/// The byte range of a structure outside the footer.
struct ParquetFileRange {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;  ///< 0: missing
};

/// The column chunk of one leaf in one row group.
struct ParquetChunk {
  std::int64_t type = -1;
  std::int64_t codec = 0;
  std::int64_t values = 0;  ///< including nulls
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
  bool is_external = false;  ///< in another file
  bool is_encrypted = false;
  ParquetStatistics statistics;
  ParquetFileRange offset_index;  ///< byte range of the page locations
  ParquetFileRange column_index;  ///< byte range of the page statistics
};

struct ParquetGroup {
  std::uint64_t rows = 0;
  std::vector<ParquetChunk> chunks;  ///< one for each leaf
};

struct ParquetFooter {
  std::uint64_t rows = 0;
  std::vector<SchemaLeaf> leaves;
  std::vector<ParquetGroup> groups;
  /// For each leaf whether the file declares that its statistics have the type's order.
  std::vector<bool> has_order;
  /// The metadata of the Hugging Face Hub's writers: JSON, or "".
  std::string hub_metadata;
  /// An early writer left the dictionary's header out of a chunk's bytes.
  bool has_short_chunks = false;
};

/// Corrupt, beginning with `subject`, for an inconsistent footer. The columns of a group are the leaves, in
/// order.
Result<ParquetFooter> read_footer(std::span<const std::byte> bytes, std::string_view subject);

}  // namespace stoker::parquet
