#include "archive/streams/unpack_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>

#include "archive/streams/arrow.h"
#include "base/encode.h"
#include "base/json/json.h"
#include "base/language/counted.h"
#include "codec/load.h"
#include "stoker/bytes.h"
#include "stoker/text.h"

namespace stoker::archive {

namespace {

using Kind = ArrowField::Kind;
using Json = nlohmann::json;

constexpr std::string_view kTableMagic("LDARW01\0", 8);
constexpr std::size_t kTail = sizeof(std::uint32_t) + kTableMagic.size();
constexpr std::uint64_t kMaxTable = std::uint64_t{2} << 30;
constexpr std::uint64_t kMaxInValue = 16u << 20;  // numbers and texts of a list
constexpr std::size_t kFlushBytes = 4u << 20;

struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// Finds the table at the end of the file, if there is one.
Result<std::optional<ByteRange>> find_table(const StreamFile& from) {
  if (from.size < kTail) return std::optional<ByteRange>();
  std::vector<std::byte> tail(kTail);
  STOKER_RETURN_IF_ERROR(from.read(from.size - kTail, tail));
  const std::string_view magic(reinterpret_cast<const char*>(tail.data()) + 4, kTableMagic.size());
  if (magic != kTableMagic) return std::optional<ByteRange>();
  const std::uint64_t bytes = codec::load<std::uint32_t>(tail, 0);
  if (bytes > from.size - kTail)
    return corrupt("{}: its Arrow table of {} bytes is torn", from.subject, bytes);
  if (bytes > kMaxTable)
    return invalid("{}: has an Arrow table of over {}", from.subject, rounded({kMaxTable}));
  return std::optional(ByteRange{from.size - kTail - bytes, bytes});
}

// The encoding of each kind of column; all other kinds become JSON.
struct ColumnMapping {
  Kind arrow;
  ColumnKind kind;
  std::string_view encoding;
};
constexpr ColumnMapping kKinds[] = {{Kind::integer, ColumnKind::integer, "int"},
                                    {Kind::unsigned_integer, ColumnKind::unsigned_integer, "int"},
                                    {Kind::floating, ColumnKind::floating, "float"},
                                    {Kind::boolean, ColumnKind::boolean, "bool"},
                                    {Kind::bytes, ColumnKind::file, "bytes"},
                                    {Kind::text, ColumnKind::file, "str"}};

// A value of a row that becomes a column, possibly in nested structs.
struct Leaf {
  std::vector<std::size_t> path;
  StreamColumn column;
};

class LeafCollector {
 public:
  explicit LeafCollector(const std::string& subject) : subject_(subject) {}

  Status add(const std::vector<ArrowField>& fields, const std::string& above) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const ArrowField& field = fields[i];
      if (field.name.empty() || !is_utf8(field.name)) return corrupt("{}: empty column name", subject_);
      const std::string name = above.empty() ? field.name : format("{}.{}", above, field.name);
      path_.push_back(i);
      if (field.kind == Kind::structure) STOKER_RETURN_IF_ERROR(add(field.children, name));
      if (field.kind != Kind::structure && field.kind != Kind::none)
        STOKER_RETURN_IF_ERROR(add_leaf(field, name));
      path_.pop_back();
    }
    return {};
  }

  std::vector<Leaf> take() { return std::move(leaves_); }

 private:
  Status add_leaf(const ArrowField& field, const std::string& name) {
    Leaf leaf{.path = path_,
              .column = {.name = name, .encoding = {}, .extension = {}, .type = {}, .shape = {}}};
    StreamColumn& column = leaf.column;
    column.kind = ColumnKind::json;
    column.encoding = "json";
    for (const auto& [arrow, kind, encoding] : kKinds) {
      if (arrow != field.kind) continue;
      column.kind = kind;
      column.encoding = encoding;
    }
    if (column.kind == ColumnKind::json && holds_bytes(field)) {
      return invalid("{}: column '{}' is a list of bytes, which is not supported", subject_, printable(name))
          .cure("write each of them in a separate column");
    }
    leaves_.push_back(std::move(leaf));
    return {};
  }

  static bool holds_bytes(const ArrowField& field) {
    return field.kind == Kind::bytes ||
           std::any_of(field.children.begin(), field.children.end(), holds_bytes);
  }

  const std::string& subject_;
  std::vector<std::size_t> path_;
  std::vector<Leaf> leaves_;
};

double to_double(std::span<const std::byte> value) {
  if (value.size() == sizeof(double)) return codec::load<double>(value, 0);
  if (value.size() == sizeof(float)) return static_cast<double>(codec::load<float>(value, 0));
  const auto bits = codec::load<std::uint16_t>(value, 0);
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  if (exponent == 31) size = fraction == 0 ? HUGE_VAL : std::nan("");
  return (bits & 0x8000) != 0 ? -size : size;
}

// Widened to eight bytes.
std::uint64_t integer_bits(std::span<const std::byte> value, bool is_signed) {
  const bool is_negative = is_signed && (value.back() & std::byte{0x80}) != std::byte{0};
  std::uint64_t bits = is_negative ? ~std::uint64_t{0} : 0;
  std::memcpy(&bits, value.data(), value.size());
  return bits;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Lists as JSON. Numbers that JSON lacks (NaN) are null.
class ListJsonWriter {
 public:
  explicit ListJsonWriter(const std::string& subject) : subject_(subject) {}

  /// Valid until the next call.
  Result<std::string_view> write(const ArrowColumn& column, std::uint64_t i) {
    text_.clear();
    values_ = 0;
    STOKER_RETURN_IF_ERROR(put(column, i));
    return std::string_view(text_);
  }

 private:
  Status put(const ArrowColumn& column, std::uint64_t i) {
    if (++values_ > kMaxInValue)
      return invalid("{}: a list has more than {} values, which is not supported", subject_,
                     grouped(kMaxInValue));
    if (column.is_null(i)) return add("null");
    switch (column.field->kind) {
      case Kind::integer:
        return add(format("{}", static_cast<std::int64_t>(integer_bits(column.number(i), true))));
      case Kind::unsigned_integer:
        return add(format("{}", integer_bits(column.number(i), false)));
      case Kind::floating:
        return add(json_text(Json(to_double(column.number(i)))));
      case Kind::boolean:
        return add(column.boolean(i) ? "true" : "false");
      case Kind::text:
        return add(json_string(as_text(column.value(i))));
      case Kind::structure:
        return put_fields(column, i);
      default:
        return put_list(column, i);
    }
  }

  Status put_list(const ArrowColumn& column, std::uint64_t i) {
    const auto [begin, end] = column.range(i);
    text_ += '[';
    for (std::uint64_t k = begin; k < end; ++k) {
      if (k > begin) text_ += ',';
      STOKER_RETURN_IF_ERROR(put(column.children[0], k));
    }
    return add("]");
  }

  Status put_fields(const ArrowColumn& column, std::uint64_t i) {
    text_ += '{';
    for (std::size_t k = 0; k < column.children.size(); ++k) {
      text_ += format("{}{}:", k > 0 ? "," : "", json_string(column.children[k].field->name));
      STOKER_RETURN_IF_ERROR(put(column.children[k], i));
    }
    return add("}");
  }

  Status add(std::string_view text) {
    text_ += text;
    return {};
  }

  const std::string& subject_;
  std::string text_;
  std::uint64_t values_ = 0;
};

// Writes rows in the layout of other chunks: sizes, then values.
class RowWriter {
 public:
  RowWriter(const std::vector<Leaf>& leaves, StreamTarget to, const std::string& subject)
      : leaves_(leaves), to_(to), subject_(subject), json_(subject) {}

  Status add(const std::vector<ArrowColumn>& columns, std::uint64_t row) {
    row_.clear();
    const std::size_t sizes = buffer_.size();
    buffer_.resize(sizes + leaves_.size() * sizeof(std::uint32_t));
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      STOKER_ASSIGN_OR_RETURN(size, put(columns, leaves_[i].path, row));
      std::memcpy(buffer_.data() + sizes + i * sizeof size, &size, sizeof size);
    }
    buffer_ += row_;
    if (buffer_.size() > to_.most - written_)
      return no_space("{}: unpacks to over {}, more than the free space", subject_, rounded({to_.most}));
    offsets_.push_back(written_ + buffer_.size());
    return buffer_.size() < kFlushBytes ? Status() : flush();
  }

  Status flush() {
    STOKER_RETURN_IF_ERROR(to_.file.write(buffer_));
    written_ += buffer_.size();
    buffer_.clear();
    return {};
  }

  StreamOffsets take_offsets() { return std::move(offsets_); }

 private:
  Result<std::uint32_t> put(const std::vector<ArrowColumn>& columns, const std::vector<std::size_t>& path,
                            std::uint64_t row) {
    const ArrowColumn* column = &columns[path[0]];
    for (std::size_t i = 1; i < path.size() && !column->is_null(row); ++i)
      column = &column->children[path[i]];
    if (column->is_null(row)) return kNullStreamValue;
    const std::size_t before = row_.size();
    switch (column->field->kind) {
      case Kind::integer:
        put_number(integer_bits(column->number(row), true));
        break;
      case Kind::unsigned_integer:
        put_number(integer_bits(column->number(row), false));
        break;
      case Kind::floating:
        put_number(to_double(column->number(row)));
        break;
      case Kind::boolean:
        row_ += static_cast<char>(column->boolean(row));
        break;
      case Kind::bytes:
      case Kind::text:
        row_ += as_text(column->value(row));
        break;
      default: {
        STOKER_ASSIGN_OR_RETURN(text, json_.write(*column, row));
        row_ += text;
      }
    }
    const std::size_t size = row_.size() - before;
    if (size >= kNullStreamValue) return invalid("{}: a value has over 4 GiB", subject_);
    return static_cast<std::uint32_t>(size);
  }

  template <typename T>
  void put_number(T value) {
    row_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  const std::vector<Leaf>& leaves_;
  StreamTarget to_;
  const std::string& subject_;
  ListJsonWriter json_;
  std::string row_;
  std::string buffer_;
  std::uint64_t written_ = 0;
  StreamOffsets offsets_ = {0};
};

}  // namespace

Result<std::optional<StreamTable>> unpack_stream_table(const StreamFile& from, std::uint64_t samples,
                                                       StreamTarget to, const Progress& progress) {
  const std::string& subject = from.subject;
  STOKER_ASSIGN_OR_RETURN(place, find_table(from));
  if (!place) return std::optional<StreamTable>();
  std::vector<std::byte> bytes(place->bytes);
  STOKER_RETURN_IF_ERROR(from.read(place->offset, bytes));
  STOKER_ASSIGN_OR_RETURN(table, ArrowTable::open(bytes, subject));
  LeafCollector found(subject);
  STOKER_RETURN_IF_ERROR(found.add(table.fields(), ""));
  const std::vector<Leaf> leaves = found.take();
  RowWriter writer(leaves, to, subject);
  std::uint64_t rows = 0;
  for (;;) {
    STOKER_ASSIGN_OR_RETURN(columns, table.next());
    if (!columns) break;
    if (progress.stop_requested()) return cancelled("{}: interrupted while it was unpacked", subject);
    rows += table.rows();
    if (rows > samples) break;
    for (std::uint64_t row = 0; row < table.rows(); ++row) STOKER_RETURN_IF_ERROR(writer.add(*columns, row));
  }
  if (rows != samples) {
    return corrupt("{}: its Arrow table has {}{}, expected {}", subject, counted(rows, "row"),
                   rows > samples ? " or more" : "", samples);
  }
  STOKER_RETURN_IF_ERROR(writer.flush());
  StreamTable made{.offsets = writer.take_offsets(), .columns = {}};
  for (const Leaf& leaf : leaves) made.columns.push_back(leaf.column);
  return std::optional(std::move(made));
}

}  // namespace stoker::archive
