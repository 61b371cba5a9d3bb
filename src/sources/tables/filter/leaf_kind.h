// Types of a Parquet leaf for comparison and conversion. Used by tables. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>

#include "parquet/columns/number.h"
#include "parquet/schema/leaf.h"
#include "stoker/tensor_view.h"

namespace stoker::sources {

using parquet::number_type;

/// Whether its bytes are text, or may be.
bool is_text(const parquet::ParquetLeaf& leaf);

/// "int64", "text", "date", "list of float32": for messages.
std::string type_name(const parquet::ParquetLeaf& leaf);

/// For dates and timestamps the number of units per day; else nullopt.
std::optional<std::int64_t> units_per_day(const parquet::ParquetLeaf& leaf);

/// "2026-11-23" or "2026-11-23 14:05:06.5", in UTC, as units since 1970. A time between two units is a
/// fraction. Nullopt for other texts.
std::optional<parquet::Number> parse_timestamp(std::string_view text, std::int64_t units_per_day);

/// The number in a slot of a leaf. REQUIRES: number_type(leaf).
parquet::Number number_at(const parquet::ParquetValues& values, const parquet::ParquetLeaf& leaf,
                          std::uint64_t slot);

}  // namespace stoker::sources
