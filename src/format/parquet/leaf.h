// What a Parquet table's columns are and hold, whatever stands around them in groups, lists and maps.
// Immutable values. Layout: docs/formats/parquet.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor_view.h"
#include "format/parquet/columns/texts.h"
#include "format/raw_bytes.h"

namespace stoker::formats {

/// One leaf column: what stands at the end of a path through groups and lists.
struct ParquetLeaf {
  /// What its values become. Dates and times are whole numbers of their unit, INT96 an int64 of microseconds
  /// since 1970, decimals the float64 that is nearest; arrays of bytes of one size are `bytes`. `other` is
  /// not read.
  enum class Type : std::uint8_t {
    boolean,
    int8,
    uint8,
    int16,
    uint16,
    int32,
    uint32,
    int64,
    uint64,
    float16,
    float32,
    float64,
    bytes,
    other,
  };

  /// The path with dots, without the wrappers of lists and maps (`list.element`, `array`, `key_value`):
  /// "image.bytes", "tokens", "scores.key". One that is there twice has "#2" behind it, the next "#3".
  std::string name;
  Type type = Type::other;
  /// For people, "" where the type says all: "text", "json", "bson", "enum", "uuid", "interval", "null",
  /// "date", "time[ms]", "timestamp[us]" (a clock on a wall), "timestamp[us, tz=UTC]", "decimal(10, 2)",
  /// "geometry", "geography".
  std::string logical;
  unsigned lists = 0;           ///< how many lists it stands in; 0: one value a row
  bool may_be_missing = false;  ///< a value, or a structure or list around it
};

/// Bytes of one number; 0 for `bytes` and `other`.
std::size_t byte_width(ParquetLeaf::Type type);
/// "int8", "bytes", ...
std::string_view to_text(ParquetLeaf::Type type);
bool is_integer(ParquetLeaf::Type type);
/// The type of its numbers; nothing for bytes and what is not read.
std::optional<DType> number_type(const ParquetLeaf& leaf);

/// The values of one leaf in one row group. A slot is a place for one value: a row, or an item of the
/// innermost list. A list that is missing or empty has no slots.
struct ParquetValues {
  std::uint64_t rows = 0;
  std::uint64_t slots = 0;
  /// One number for each slot, little-endian, byte_width() each (a boolean is 0 or 1); 0 where it is missing.
  RawBytes numbers;
  /// In place of numbers for `bytes`; "" where it is missing.
  ParquetTexts texts;
  /// For each slot whether it holds a value; empty where all do.
  std::vector<std::uint8_t> present;

  struct List {
    /// One more than there are lists: the items of list i are those from [i] to before [i + 1], counted in
    /// lists of the next level, or in slots.
    std::vector<std::uint64_t> offsets;
    /// For each list whether it is there, if only empty; empty where all are.
    std::vector<std::uint8_t> present;
  };
  /// Outermost first: there is one list of level 0 for each row.
  std::vector<List> lists;

  /// As if new, but for the memory, which what comes next is put into.
  void clear();
  bool is_present(std::uint64_t slot) const { return present.empty() || present[slot] != 0; }
  /// Whether all lists are there, and those of level i have sizes[i] items each. `sizes`: one for each level
  /// at least.
  bool has_lists_of(std::span<const std::uint64_t> sizes) const;
  /// Whether a row has a value, or a list, which may be empty.
  bool is_row_present(std::uint64_t row) const {
    if (lists.empty()) return is_present(row);
    return lists[0].present.empty() || lists[0].present[row] != 0;
  }
};

/// What a file says of the values of a leaf in a row group. It is not checked against them.
struct ParquetRange {
  /// No value lies below or above, but these themselves may be no values. A number as in `numbers`, or the
  /// text's bytes, that may be cut off. NaNs are not counted, -0.0 is 0.0. Both or none: it is not said, or
  /// said by old writers that ordered as they liked.
  std::optional<std::string> least;
  std::optional<std::string> most;
  std::optional<std::uint64_t> missing;  ///< rows without a value; of leaves in no list
};

}  // namespace stoker::formats
