#include "parquet/schema/schema.h"

#include <algorithm>
#include <map>

#include "parquet/pages/page.h"
#include "stoker/text.h"

namespace stoker::parquet {

namespace {

using Field = ThriftReader::Field;
using Kind = LogicalType::Kind;
using Leaf = ParquetLeaf::Type;
using Wire = ThriftReader::Type;

constexpr std::int64_t kMaxChildren = 1 << 20;
constexpr std::int64_t kMaxFixedBytes = 1 << 28;

// Units are empty structures, distinguished by field number.
void read_unit(ThriftReader& reader, LogicalType& logical_type) {
  reader.structure([&](const Field& field) {
    logical_type.unit = field.id == 1 ? "ms" : field.id == 2 ? "us" : field.id == 3 ? "ns" : "?";
    return false;
  });
}

void read_details(ThriftReader& reader, LogicalType& logical_type) {
  const bool is_time = logical_type.kind == Kind::time || logical_type.kind == Kind::timestamp;
  reader.structure([&](const Field& field) {
    const bool is_true = field.type == Wire::yes;
    if (logical_type.kind == Kind::decimal && field.id == 1 && is_integer(field)) {
      logical_type.scale = reader.integer();
    } else if (logical_type.kind == Kind::decimal && field.id == 2 && is_integer(field)) {
      logical_type.precision = reader.integer();
    } else if (logical_type.kind == Kind::integer && field.id == 1 && field.type == Wire::byte) {
      logical_type.bits = reader.small();
    } else if (logical_type.kind == Kind::integer && field.id == 2) {
      logical_type.is_signed = is_true;
      return false;
    } else if (is_time && field.id == 1) {
      logical_type.is_utc = is_true;
      return false;
    } else if (is_time && field.id == 2 && field.type == Wire::structure) {
      read_unit(reader, logical_type);
    } else {
      return false;
    }
    return true;
  });
}

// A union: the field number is the kind.
LogicalType read_logical(ThriftReader& reader) {
  static const std::map<std::int32_t, Kind> kKinds = {
      {1, Kind::text},     {2, Kind::map},      {3, Kind::list},      {4, Kind::enumeration},
      {5, Kind::decimal},  {6, Kind::date},     {7, Kind::time},      {8, Kind::timestamp},
      {10, Kind::integer}, {11, Kind::null},    {12, Kind::json},     {13, Kind::bson},
      {14, Kind::uuid},    {15, Kind::float16}, {17, Kind::geometry}, {18, Kind::geography}};
  LogicalType logical_type;
  reader.structure([&](const Field& field) {
    const auto kind = kKinds.find(field.id);
    logical_type = {.kind = kind == kKinds.end() ? Kind::other : kind->second};
    if (field.type != Wire::structure) return false;
    read_details(reader, logical_type);
    return true;
  });
  return logical_type;
}

LogicalType converted(std::int64_t number) {
  constexpr std::int64_t kUint8 = 11, kInt64 = 18;
  if (number >= kUint8 && number <= kInt64) {
    const std::int64_t step = (number - kUint8) % 4;
    return {.kind = Kind::integer, .bits = std::int64_t{8} << step, .is_signed = number >= kUint8 + 4};
  }
  switch (number) {
    case 0:
      return {.kind = Kind::text};
    case 1:
    case 2:
      return {.kind = Kind::map};
    case 3:
      return {.kind = Kind::list};
    case 4:
      return {.kind = Kind::enumeration};
    case 5:
      return {.kind = Kind::decimal};
    case 6:
      return {.kind = Kind::date};
    case 7:
    case 8:
      return {.kind = Kind::time, .is_utc = true, .unit = number == 7 ? "ms" : "us"};
    case 9:
    case 10:
      return {.kind = Kind::timestamp, .is_utc = true, .unit = number == 9 ? "ms" : "us"};
    case 19:
      return {.kind = Kind::json};
    case 20:
      return {.kind = Kind::bson};
    case 21:
      return {.kind = Kind::interval};
    default:
      return {.kind = Kind::other};
  }
}

Leaf integer_type(const LogicalType& logical_type, unsigned stored_bits) {
  const std::int64_t bits = logical_type.kind == Kind::integer ? logical_type.bits : stored_bits;
  const bool is_signed = logical_type.kind != Kind::integer || logical_type.is_signed;
  // A width other than 8 or 16 is ignored in favour of the stored width.
  if (bits == 8 && stored_bits == 32) return is_signed ? Leaf::int8 : Leaf::uint8;
  if (bits == 16 && stored_bits == 32) return is_signed ? Leaf::int16 : Leaf::uint16;
  if (stored_bits == 32) return is_signed ? Leaf::int32 : Leaf::uint32;
  return is_signed ? Leaf::int64 : Leaf::uint64;
}

Leaf type_of(const SchemaElement& element) {
  const bool is_decimal = element.logical_type.kind == Kind::decimal;
  switch (element.type) {
    case kParquetBoolean:
      return Leaf::boolean;
    case kParquetInt32:
      return is_decimal ? Leaf::float64 : integer_type(element.logical_type, 32);
    case kParquetInt64:
      return is_decimal ? Leaf::float64 : integer_type(element.logical_type, 64);
    case kParquetInt96:
      return Leaf::int64;
    case kParquetFloat:
      return Leaf::float32;
    case kParquetDouble:
      return Leaf::float64;
    case kParquetByteArray:
      return is_decimal ? Leaf::float64 : Leaf::bytes;
    case kParquetFixedByteArray:
      if (element.type_length <= 0 || element.type_length > kMaxFixedBytes) return Leaf::other;
      if (is_decimal)
        return element.type_length > std::int64_t{kMaxDecimalBytes} ? Leaf::other : Leaf::float64;
      return element.logical_type.kind == Kind::float16 && element.type_length == 2 ? Leaf::float16
                                                                                    : Leaf::bytes;
    default:
      return Leaf::other;
  }
}

std::string logical_of(const SchemaElement& element) {
  const LogicalType& logical_type = element.logical_type;
  if (element.type == kParquetInt96) return "timestamp[us]";
  switch (logical_type.kind) {
    case Kind::text:
      return "text";
    case Kind::enumeration:
      return "enum";
    case Kind::decimal:
      return format("decimal({}, {})", logical_type.precision, logical_type.scale);
    case Kind::date:
      return "date";
    case Kind::time:
      return format("time[{}]", logical_type.unit);
    case Kind::timestamp:
      return format("timestamp[{}{}]", logical_type.unit, logical_type.is_utc ? ", tz=UTC" : "");
    case Kind::null:
      return "null";
    case Kind::json:
      return "json";
    case Kind::bson:
      return "bson";
    case Kind::uuid:
      return "uuid";
    case Kind::interval:
      return "interval";
    case Kind::geometry:
      return "geometry";
    case Kind::geography:
      return "geography";
    default:
      return "";
  }
}

bool has_order(const SchemaElement& element) {
  const Kind kind = element.logical_type.kind;
  return element.type != kParquetInt96 && kind != Kind::interval && kind != Kind::geometry &&
         kind != Kind::geography && kind != Kind::null && kind != Kind::other;
}

// A leaf with all but its name and levels.
SchemaLeaf describe(const SchemaElement& element) {
  SchemaLeaf leaf;
  leaf.column.type = type_of(element);
  leaf.column.logical = logical_of(element);
  leaf.layout.stored.type = element.type;
  if (element.type == kParquetFixedByteArray)
    leaf.layout.stored.width = static_cast<std::uint32_t>(std::max<std::int64_t>(0, element.type_length));
  leaf.layout.is_decimal = element.logical_type.kind == Kind::decimal && leaf.column.type == Leaf::float64 &&
                           element.type != kParquetDouble;
  constexpr std::int64_t kMaxScale = 1000;
  leaf.layout.scale = static_cast<int>(std::clamp(element.logical_type.scale, -kMaxScale, kMaxScale));
  leaf.layout.has_order = has_order(element);
  // Old writers compared everything as signed.
  const Leaf type = leaf.column.type;
  const bool is_signed = type == Leaf::int8 || type == Leaf::int16 || type == Leaf::int32 ||
                         type == Leaf::int64 || type == Leaf::float32 || type == Leaf::float64;
  leaf.layout.has_old_order = is_signed && element.type != kParquetByteArray &&
                              element.type != kParquetFixedByteArray && element.type != kParquetInt96;
  return leaf;
}

// Takes the tree apart, element by element.
class SchemaWalker {
 public:
  explicit SchemaWalker(const std::vector<SchemaElement>& schema) : schema_(schema) {}

  bool run() {
    if (schema_.empty()) return true;
    const SchemaElement& root = schema_[0];
    if (root.children < 0 || root.children > kMaxChildren) return false;
    for (std::int64_t i = 0; i < root.children; ++i) {
      if (!visit({}, nullptr, 0)) return false;
    }
    return at_ == schema_.size();
  }

  std::vector<SchemaLeaf> leaves;

 private:
  static constexpr int kMaxDepth = 32;

  // Properties of the enclosing elements.
  struct ParentInfo {
    std::string name;
    unsigned definition = 0;
    std::vector<unsigned> lists;
  };
  // The role of an element for its only child: a list, a map, or the repeated item of a list.
  enum class Wrapper { none, list, map, item };

  // Whether a list's repeated group is the item itself. Otherwise it only wraps the item. These are the
  // format's backward compatibility rules for early writers, who left out the wrapper.
  bool is_item(const SchemaElement& repeated, const SchemaElement& list) const {
    if (repeated.children != 1 || at_ >= schema_.size()) return true;
    const bool is_annotated =
        repeated.logical_type.kind == Kind::list || repeated.logical_type.kind == Kind::map;
    const bool has_repeated = schema_[at_].repetition == kParquetRepeated;
    return is_annotated || has_repeated || repeated.name == "array" || repeated.name == list.name + "_tuple";
  }

  bool visit(const ParentInfo& parent, const SchemaElement* list_element, int depth,
             Wrapper wrapper = Wrapper::none) {
    if (at_ >= schema_.size() || depth > kMaxDepth) return false;
    const SchemaElement& element = schema_[at_++];
    if (element.children < 0 || element.children > kMaxChildren) return false;
    ParentInfo here = parent;
    const bool is_repeated = element.repetition == kParquetRepeated;
    const bool is_list_body = (wrapper == Wrapper::list || wrapper == Wrapper::map) && is_repeated;
    if (!is_list_body && wrapper != Wrapper::item) here.name += (here.name.empty() ? "" : ".") + element.name;
    if (is_repeated || element.repetition == kParquetOptional) ++here.definition;
    if (is_repeated) here.lists.push_back(here.definition);
    if (element.is_leaf()) {
      add(element, here);
      return true;
    }
    Wrapper within = Wrapper::none;
    if (is_list_body && wrapper == Wrapper::list && !is_item(element, *list_element)) {
      within = Wrapper::item;
    } else if (element.children == 1 && element.logical_type.kind == Kind::list) {
      within = Wrapper::list;
    } else if (element.children == 1 && element.logical_type.kind == Kind::map) {
      within = Wrapper::map;
    }
    for (std::int64_t i = 0; i < element.children; ++i) {
      if (!visit(here, &element, depth + 1, within)) return false;
    }
    return true;
  }

  void add(const SchemaElement& element, const ParentInfo& here) {
    SchemaLeaf leaf = describe(element);
    leaf.column.name = here.name;
    const std::size_t duplicates = ++names_[here.name];
    if (duplicates > 1) leaf.column.name += format("#{}", duplicates);
    leaf.column.lists = static_cast<unsigned>(here.lists.size());
    leaf.column.is_nullable = here.definition > leaf.column.lists;
    leaf.layout.definition = here.definition;
    leaf.layout.lists = here.lists;
    leaves.push_back(std::move(leaf));
  }

  const std::vector<SchemaElement>& schema_;
  std::size_t at_ = 1;
  std::map<std::string, std::size_t> names_;
};

}  // namespace

SchemaElement read_schema_element(ThriftReader& reader) {
  SchemaElement element;
  LogicalType logical;
  std::int64_t old = -1;
  std::int64_t scale = 0;
  std::int64_t precision = 0;
  const std::map<std::int32_t, std::int64_t*> numbers = {{1, &element.type},
                                                         {2, &element.type_length},
                                                         {3, &element.repetition},
                                                         {5, &element.children},
                                                         {6, &old},
                                                         {7, &scale},
                                                         {8, &precision}};
  reader.structure([&](const Field& field) {
    const auto number = numbers.find(field.id);
    if (number != numbers.end() && is_integer(field)) {
      *number->second = reader.integer();
    } else if (field.id == 4 && field.type == Wire::binary) {
      element.name = reader.text();
    } else if (field.id == 10 && field.type == Wire::structure) {
      logical = read_logical(reader);
    } else {
      return false;
    }
    return true;
  });
  const bool has_logical = logical.kind != Kind::none;
  element.logical_type = has_logical ? logical : old >= 0 ? converted(old) : LogicalType{};
  if (!has_logical && element.logical_type.kind == Kind::decimal) {
    element.logical_type.scale = scale;
    element.logical_type.precision = precision;
  }
  return element;
}

std::optional<std::vector<SchemaLeaf>> schema_leaves(const std::vector<SchemaElement>& schema) {
  SchemaWalker walker(schema);
  if (!walker.run()) return std::nullopt;
  return std::move(walker.leaves);
}

}  // namespace stoker::parquet
