// Numeric columns of Parquet files as chunked arrays: a chunk is the column chunk of a row group, with
// dictionary and levels. Immutable, thread-safe. Layout: docs/formats/index.md#chunks.
#pragma once

#include <memory>

#include "codec/chunks/chunk_map.h"
#include "parquet/schema/schema.h"
#include "stoker/tensor_view.h"

namespace stoker::parquet {

/// Elements of type `element`, by store_number()'s rules; each row has the sizes `row`, one per enclosing
/// list. `fill` replaces nulls. REQUIRES: number_type(leaf.column).
std::shared_ptr<const codec::ChunkCoder> column_coder(const SchemaLeaf& leaf, DType element,
                                                      const codec::Extents& row, std::vector<std::byte> fill);

/// Parses the text of kind "column", as codec::CoderParser does.
Result<std::shared_ptr<const codec::ChunkCoder>> parse_column_coder(const std::string& text,
                                                                    const codec::ChunkedArray& array,
                                                                    std::string_view subject);

}  // namespace stoker::parquet
