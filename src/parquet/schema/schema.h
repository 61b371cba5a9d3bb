// The column tree of a Parquet footer, and its leaves. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parquet/pages/values.h"
#include "parquet/schema/leaf.h"
#include "parquet/thrift/thrift.h"

namespace stoker::parquet {

/// Larger decimals are unsupported.
constexpr std::size_t kMaxDecimalBytes = 32;

/// The meaning of an element's values, independent of their storage: Parquet's logical type, or the older
/// converted type.
struct LogicalType {
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
    other,  ///< unknown to this reader: the values are read as stored
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
  std::int64_t type = -1;  ///< -1: a group
  std::int64_t type_length = 0;
  LogicalType logical_type;

  bool is_leaf() const { return children == 0 && type >= 0; }
};

/// Parses the next structure of `reader`, which reports damage.
SchemaElement read_schema_element(ThriftReader& reader);

/// How a leaf is stored.
struct LeafLayout {
  StoredType stored;
  /// Definition level of a value; if above 0, values may be null.
  unsigned definition = 0;
  /// Outermost first: the level from which a list has an item.
  std::vector<unsigned> lists;
  bool is_decimal = false;
  int scale = 0;
  /// Whether min and max are meaningful, and whether they are so in the deprecated statistics.
  bool has_order = true;
  bool has_old_order = false;
};

struct SchemaLeaf {
  ParquetLeaf column;
  LeafLayout layout;
};

/// The leaves, in the order of the columns in row groups. nullopt for an inconsistent schema.
std::optional<std::vector<SchemaLeaf>> schema_leaves(const std::vector<SchemaElement>& schema);

}  // namespace stoker::parquet
