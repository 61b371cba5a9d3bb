// Columns of numbers in Parquet files as arrays in chunks: a chunk is a column of a row group, dictionary,
// levels and all. Immutable, thread-safe. Layout: docs/formats/index.md#chunks.
#pragma once

#include <memory>

#include "base/tensor_view.h"
#include "format/chunked/chunk_map.h"
#include "format/parquet/schema.h"

namespace stoker::formats {

/// Elements of type `element`, by store_number()'s rules; each row has the sizes `row`, one for each list
/// around a number. `fill` stands where a value is missing. REQUIRES: number_type(leaf.is).
std::shared_ptr<const ChunkCoder> column_coder(const SchemaLeaf& leaf, DType element, const Extents& row,
                                               std::vector<std::byte> fill);

}  // namespace stoker::formats
