// The tree of columns that a Parquet footer describes, and its leaves as readers see them. Thread-safe: no
// state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/parquet/leaf.h"
#include "format/parquet/pages/values.h"
#include "format/parquet/thrift.h"

namespace stoker::formats {

/// A decimal of more bytes is not read.
constexpr std::size_t kMostDecimalBytes = 32;

/// What an element's values mean, apart from how they are stored: Parquet's logical type, or the older
/// converted type that says the same.
struct SchemaMeaning {
  enum class Kind {
    none,
    text,
    map,
    list,
    enumeration,
    decimal,
    date,
    time,
    timestamp,
    integer,
    null,
    json,
    bson,
    uuid,
    float16,
    interval,
    geometry,
    geography,
    other,  ///< newer than this reader: the values are read as they are stored
  };
  Kind kind = Kind::none;
  std::int64_t scale = 0;  ///< of decimals
  std::int64_t precision = 0;
  std::int64_t bits = 0;  ///< of integers
  bool is_signed = true;
  bool is_utc = false;          ///< of times
  std::string_view unit = "?";  ///< "ms", "us", "ns"
};

/// An element of the schema, which lists the tree depth first.
struct SchemaElement {
  std::string name;
  std::int64_t repetition = 0;
  std::int64_t children = 0;
  std::int64_t type = -1;  ///< none: a group
  std::int64_t type_length = 0;
  SchemaMeaning meaning;

  bool is_leaf() const { return children == 0 && type >= 0; }
};

/// The next structure of `reader`, which says whether it is damaged.
SchemaElement read_schema_element(ThriftReader& reader);

/// How a leaf is stored.
struct LeafLayout {
  StoredType stored;
  /// The level of a value that is there: above 0 values may be missing.
  unsigned definition = 0;
  /// Outermost first: the level from which on a list has an item.
  std::vector<unsigned> lists;
  bool is_decimal = false;
  int scale = 0;
  /// Whether least and greatest mean anything, and whether they did in the statistics of old writers too.
  bool has_order = true;
  bool has_old_order = false;
};

struct SchemaLeaf {
  ParquetLeaf is;
  LeafLayout layout;
};

/// The leaves, in the order in which row groups have their columns. Nothing for a schema that does not hold.
std::optional<std::vector<SchemaLeaf>> leaves_of(const std::vector<SchemaElement>& schema);

}  // namespace stoker::formats
