// The leaf columns of a Parquet table and their values, inside any groups, lists and maps. Immutable values.
// Layout: docs/formats/parquet.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/raw_bytes.h"
#include "parquet/pages/texts.h"
#include "stoker/tensor_view.h"

namespace stoker::parquet {

/// One leaf column: the end of a path through groups and lists.
struct ParquetLeaf {
  /// The type of its decoded values. Dates and times are integers of their unit, INT96 an int64 of
  /// microseconds since 1970, decimals the nearest float64; byte arrays of a fixed size are `bytes`. `other`
  /// is unsupported.
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
  /// "image.bytes", "tokens", "scores.key". A duplicate has the suffix "#2", the next "#3".
  std::string name;
  Type type = Type::other;
  /// For users, "" if the type is enough: "text", "json", "bson", "enum", "uuid", "interval", "null", "date",
  /// "time[ms]", "timestamp[us]" (local time), "timestamp[us, tz=UTC]", "decimal(10, 2)", "geometry",
  /// "geography".
  std::string logical;
  unsigned lists = 0;        ///< number of enclosing lists; 0: one value per row
  bool is_nullable = false;  ///< a value, or an enclosing structure or list
};

/// Bytes of one number; 0 for `bytes` and `other`.
std::size_t byte_width(ParquetLeaf::Type type);
/// "int8", "bytes", ...
std::string_view to_text(ParquetLeaf::Type type);
bool is_integer(ParquetLeaf::Type type);
/// The type of its numbers; nullopt for bytes and unsupported types.
std::optional<DType> number_type(const ParquetLeaf& leaf);

/// The values of one leaf in one row group. A slot holds one value: a row, or an item of the innermost list.
/// A null or empty list has no slots.
struct ParquetValues {
  std::uint64_t rows = 0;
  std::uint64_t slots = 0;
  /// One number per slot, little-endian, byte_width() each (a boolean is 0 or 1); 0 for null.
  codec::RawBytes numbers;
  /// For `bytes` instead of numbers; "" for null.
  ParquetTexts texts;
  /// For each slot whether it has a value; empty if all have.
  std::vector<std::uint8_t> present;

  struct List {
    /// One more than there are lists: list i has items [i] up to [i + 1], counted in lists of the next level,
    /// or in slots.
    std::vector<std::uint64_t> offsets;
    /// For each list whether it is not null; empty if none is.
    std::vector<std::uint8_t> present;
  };
  /// Outermost first: level 0 has one list per row.
  std::vector<List> lists;

  /// Resets everything but the allocated memory.
  void clear();
  bool is_present(std::uint64_t slot) const { return present.empty() || present[slot] != 0; }
  /// Whether no list is null, and all lists of level i have sizes[i] items. REQUIRES: one size per level.
  bool has_list_sizes(std::span<const std::uint64_t> sizes) const;
  /// Whether a row has a value or a list, even an empty one.
  bool is_row_present(std::uint64_t row) const {
    if (lists.empty()) return is_present(row);
    return lists[0].present.empty() || lists[0].present[row] != 0;
  }
};

/// A file's statistics of a leaf in a row group, not compared with the values.
struct ParquetRange {
  /// Bounds of the values, which need not occur as values. A number as in `numbers`, or a text's bytes,
  /// possibly truncated. NaNs are ignored, -0.0 is 0.0. Both or neither: they are missing, or from early
  /// writers with an unreliable order.
  std::optional<std::string> min;
  std::optional<std::string> max;
  std::optional<std::uint64_t> null_count;  ///< for leaves in no list
};

}  // namespace stoker::parquet
