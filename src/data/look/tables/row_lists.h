// Lists of texts and of bytes in a row of a table, as files of its sample. Used by row_sample. Thread-safe:
// no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "format/parquet/leaf.h"

namespace stoker::data {

/// Whether it holds lists of texts, however deep: a JSON file.
bool is_list_of_texts(const formats::ParquetLeaf& leaf);
/// Whether it holds lists of bytes that are no text: a file for each item.
bool is_list_of_bytes(const formats::ParquetLeaf& leaf);

/// A row's list as JSON, what is missing in it as null; nothing where it is missing itself. Invalid for bytes
/// that are no UTF-8 and beyond 1 GiB. REQUIRES: is_list_of_texts().
Result<std::optional<std::string>> json_of_list(const formats::ParquetValues& values, std::uint64_t row);

/// The slots of a row's list. REQUIRES: one level of lists.
struct SlotRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
SlotRange slots_of(const formats::ParquetValues& values, std::uint64_t row);

/// "images.3.jpg": of image bytes with their kind, of others "images.3".
std::string extension_of_item(const std::string& name, std::uint64_t number,
                              std::span<const std::byte> bytes);

}  // namespace stoker::data
