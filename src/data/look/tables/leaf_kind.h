// What a leaf of a table is to whoever compares it or makes files of it. Used by tables. Thread-safe: no
// state.
#pragma once

#include <optional>
#include <string>

#include "base/tensor_view.h"
#include "format/parquet/columns/number.h"
#include "format/parquet/leaf.h"

namespace stoker::data {

using formats::number_type;

/// Whether its bytes are text, or may be.
bool is_text(const formats::ParquetLeaf& leaf);

/// "int64", "text", "date", "list of float32": for messages.
std::string described(const formats::ParquetLeaf& leaf);

/// Of dates and timestamps how many of its unit are a day; nothing for all others.
std::optional<std::int64_t> units_per_day(const formats::ParquetLeaf& leaf);

/// "2026-11-23" or "2026-11-23 14:05:06.5", in UTC, as a number of units since 1970. What lies between two of
/// them is told by a fraction. Nothing for other texts.
std::optional<formats::Number> moment_of(std::string_view text, std::int64_t units_per_day);

/// The number in a slot of a leaf. REQUIRES: number_type(leaf).
formats::Number number_at(const formats::ParquetValues& values, const formats::ParquetLeaf& leaf,
                          std::uint64_t slot);

}  // namespace stoker::data
