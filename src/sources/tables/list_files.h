// Lists of texts and of bytes in a row of a table, as files of its sample. Used by row_sample_builder.
// Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "parquet/schema/leaf.h"
#include "stoker/status.h"

namespace stoker::sources {

/// Whether it has lists of texts, at any depth: a JSON file.
bool is_list_of_texts(const parquet::ParquetLeaf& leaf);
/// Whether it has lists of non-text bytes: one file per item.
bool is_list_of_bytes(const parquet::ParquetLeaf& leaf);

/// A row's list as JSON, with null for missing items; nullopt for a missing list. Invalid for bytes that are
/// not UTF-8 and beyond 1 GiB. REQUIRES: is_list_of_texts().
Result<std::optional<std::string>> json_of_list(const parquet::ParquetValues& values, std::uint64_t row);

/// The slots of a row's list. REQUIRES: one level of lists.
struct SlotRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
SlotRange slots_of(const parquet::ParquetValues& values, std::uint64_t row);

/// "images.3.jpg" for image bytes, else "images.3".
std::string extension_of_item(const std::string& name, std::uint64_t number,
                              std::span<const std::byte> bytes);

}  // namespace stoker::sources
