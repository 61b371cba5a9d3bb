#include "parquet/columns/column_coder.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "codec/chunks/coders.h"
#include "parquet/columns/elements.h"
#include "parquet/columns/leaf_reader.h"

namespace stoker::parquet {

namespace {

using nlohmann::json;
using Type = ParquetLeaf::Type;

class ColumnCoder final : public codec::ChunkCoder {
 public:
  ColumnCoder(SchemaLeaf leaf, DType element, codec::Extents row, std::vector<std::byte> fill)
      : leaf_(std::move(leaf)), element_(element), row_(std::move(row)), fill_(std::move(fill)) {}

  Kind kind() const override { return Kind::column; }

  std::string to_text() const override {
    const LeafLayout& layout = leaf_.layout;
    json text = {{"stored", layout.stored.type},
                 {"width", layout.stored.width},
                 {"definition", layout.definition},
                 {"lists", layout.lists},
                 {"leaf", parquet::to_text(leaf_.column.type)},
                 {"element", stoker::to_text(element_)}};
    if (layout.is_decimal) text["scale"] = layout.scale;
    return json_text(text);
  }

  // The last chunk may have fewer rows than `bytes` allows.
  Result<codec::Buffer> decode(const codec::StoredChunk& place, std::uint64_t bytes,
                               std::span<const std::byte> stored, std::string_view subject) const override {
    const std::uint64_t rows = place.rows();
    const std::size_t width = size_of(element_);
    const auto per_row = codec::product(row_, width);
    if (!per_row || (*per_row > 0 && rows > bytes / *per_row))
      return corrupt("{}: has {}, which do not fit", subject, counted(rows, "row"));
    const std::uint64_t slots = rows * *per_row / width;
    const archive::ReadAt read = [stored](std::uint64_t at, std::span<std::byte> out) -> Status {
      if (!out.empty()) std::memcpy(out.data(), stored.data() + at, out.size());
      return {};
    };
    const ParquetChunk chunk{.type = leaf_.layout.stored.type,
                             .codec = static_cast<std::int64_t>(place.codec()),
                             .values = static_cast<std::int64_t>(slots),
                             .bytes = static_cast<std::int64_t>(stored.size())};
    constexpr std::uint64_t kEach = 256, kRoom = 64u << 20;  // of memory, with all that is on the way
    std::uint64_t left = kRoom + slots * kEach + stored.size() * 8;
    ParquetValues values;
    ChunkPages pages(read, 0, stored.size(), subject);
    STOKER_RETURN_IF_ERROR(read_leaf_chunk({chunk, leaf_, rows, subject, &left}, pages, values));
    if (values.slots != slots || values.lists.size() != row_.size() || !values.has_list_sizes(row_))
      return corrupt("{}: its lists have changed their sizes", subject);
    codec::Buffer elements(bytes);
    if (elements.bytes().size() != bytes) return unavailable("{}: no memory for {} bytes", subject, bytes);
    if (!put_elements(leaf_.column, values, element_, fill_, elements.bytes().data()))
      return corrupt("{}: holds a value that is not a valid {}", subject, stoker::to_text(element_));
    const auto rest = elements.bytes().subspan(slots * width);
    std::fill(rest.begin(), rest.end(), std::byte{});
    return elements;
  }

 private:
  SchemaLeaf leaf_;
  DType element_;
  codec::Extents row_;
  std::vector<std::byte> fill_;
};

// Whether values are stored as leaves of that type are.
bool fits(const LeafLayout& layout, Type type) {
  const std::int64_t stored = layout.stored.type;
  const std::uint32_t width = layout.stored.width;
  const bool is_fixed = stored == kParquetFixedByteArray;
  if (layout.is_decimal) {
    const bool is_number = stored == kParquetInt32 || stored == kParquetInt64 || stored == kParquetByteArray;
    return type == Type::float64 && (is_number || (is_fixed && width > 0 && width <= kMaxDecimalBytes));
  }
  switch (type) {
    case Type::boolean:
      return stored == kParquetBoolean;
    case Type::int64:
      return stored == kParquetInt64 || stored == kParquetInt96;
    case Type::uint64:
      return stored == kParquetInt64;
    case Type::float16:
      return is_fixed && width == 2;
    case Type::float32:
      return stored == kParquetFloat;
    case Type::float64:
      return stored == kParquetDouble;
    default:
      return is_integer(type) && stored == kParquetInt32;
  }
}

// Reads an integer that fits T.
template <typename T>
bool read_int(const json& from, const char* name, T& into) {
  if (!from.contains(name) || !from[name].is_number_integer()) return false;
  if (from[name].is_number_unsigned() && from[name].get<std::uint64_t>() > INT32_MAX) return false;
  const auto number = from[name].get<std::int64_t>();
  if (!std::in_range<T>(number) || number < std::numeric_limits<std::int32_t>::min()) return false;
  into = static_cast<T>(number);
  return true;
}

bool read_lists(const json& from, LeafLayout& layout) {
  if (!from.contains("lists") || !from["lists"].is_array()) return false;
  for (const json& level : from["lists"]) {
    if (!level.is_number_unsigned() || level.get<std::uint64_t>() > layout.definition) return false;
    layout.lists.push_back(level.get<unsigned>());
    const std::size_t before = layout.lists.size() - 1;
    if (layout.lists[before] == 0 || (before > 0 && layout.lists[before] <= layout.lists[before - 1]))
      return false;
  }
  return true;
}

std::optional<Type> leaf_type(const json& from) {
  if (!from.contains("leaf") || !from["leaf"].is_string()) return std::nullopt;
  for (auto type = Type::boolean; type < Type::bytes; type = static_cast<Type>(static_cast<int>(type) + 1))
    if (to_text(type) == from["leaf"].get_ref<const std::string&>()) return type;
  return std::nullopt;
}

}  // namespace

std::shared_ptr<const codec::ChunkCoder> column_coder(const SchemaLeaf& leaf, DType element,
                                                      const codec::Extents& row,
                                                      std::vector<std::byte> fill) {
  return std::make_shared<const ColumnCoder>(leaf, element, row, std::move(fill));
}

Result<std::shared_ptr<const codec::ChunkCoder>> parse_column_coder(const std::string& text,
                                                                    const codec::ChunkedArray& array,
                                                                    std::string_view subject) {
  constexpr std::size_t kFields = 6;
  constexpr unsigned kDeepest = 255;
  const auto damaged = [&] { return corrupt("{}: its coding is damaged", subject); };
  const json from = parse_json<json>(text);
  if (!from.is_object()) return damaged();
  SchemaLeaf leaf;
  LeafLayout& layout = leaf.layout;
  layout.is_decimal = from.contains("scale");
  const auto type = leaf_type(from);
  const bool holds =
      from.size() == kFields + (layout.is_decimal ? 1 : 0) && read_int(from, "stored", layout.stored.type) &&
      read_int(from, "width", layout.stored.width) && read_int(from, "definition", layout.definition) &&
      layout.definition <= kDeepest && (!layout.is_decimal || read_int(from, "scale", layout.scale)) &&
      read_lists(from, layout) && type && fits(layout, *type) && from.contains("element") &&
      from["element"].is_string();
  if (!holds) return damaged();
  const auto element = dtype_named(from["element"].get_ref<const std::string&>());
  // Rows are whole: chunks are cut along the first dimension only.
  const bool is_array = array.shape.size() == layout.lists.size() + 1 &&
                        array.chunks.size() == array.shape.size() &&
                        std::equal(array.shape.begin() + 1, array.shape.end(), array.chunks.begin() + 1);
  if (!element || *element == DType::bf16 || !is_array || array.element_bytes != size_of(*element) ||
      array.fill.size() != array.element_bytes)
    return damaged();
  leaf.column.type = *type;
  leaf.column.lists = static_cast<unsigned>(layout.lists.size());
  return column_coder(leaf, *element, {array.shape.begin() + 1, array.shape.end()}, array.fill);
}

}  // namespace stoker::parquet
