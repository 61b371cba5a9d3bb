// LitData's chunks whose samples are rows of an Arrow table (LitData 0.2.70 and later):
//
//   u32 samples, u32 offsets[samples + 1], all of them behind the last: there is nothing between them
//   an Arrow IPC file, or stream
//   u32 its bytes, LDARW01\0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "base/encode.h"
#include "base/json/json.h"
#include "base/text.h"
#include "format/load.h"
#include "format/streams/arrow.h"
#include "format/streams/stream_rows.h"

namespace stoker::formats {

namespace {

using Kind = ArrowField::Kind;
using Json = nlohmann::json;

constexpr std::string_view kTableMagic("LDARW01\0", 8);
constexpr std::size_t kTail = sizeof(std::uint32_t) + kTableMagic.size();
constexpr std::uint64_t kMostTable = std::uint64_t{2} << 30;
constexpr std::uint64_t kMostInValue = 16u << 20;  // numbers and texts of a list
constexpr std::size_t kHeld = 4u << 20;

struct Place {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

// Where the table lies, if the file ends in one.
Result<std::optional<Place>> table_in(const StreamFile& from) {
  if (from.size < kTail) return std::optional<Place>();
  std::vector<std::byte> tail(kTail);
  RETURN_IF_ERROR(from.read(from.size - kTail, tail));
  const std::string_view magic(reinterpret_cast<const char*>(tail.data()) + 4, kTableMagic.size());
  if (magic != kTableMagic) return std::optional<Place>();
  const std::uint64_t bytes = load<std::uint32_t>(tail, 0);
  if (bytes > from.size - kTail)
    return corrupt("{}: its Arrow table of {} bytes is torn", from.subject, bytes);
  if (bytes > kMostTable)
    return invalid("{}: has an Arrow table of over {}", from.subject, rounded({kMostTable}));
  return std::optional(Place{from.size - kTail - bytes, bytes});
}

// What columns become; all others JSON.
struct KindOfColumn {
  Kind arrow;
  ColumnKind kind;
  std::string_view encoding;
};
constexpr KindOfColumn kKinds[] = {
    {Kind::integer, ColumnKind::integer, "int"}, {Kind::natural, ColumnKind::natural, "int"},
    {Kind::real, ColumnKind::real, "float"},     {Kind::boolean, ColumnKind::boolean, "bool"},
    {Kind::bytes, ColumnKind::file, "bytes"},    {Kind::text, ColumnKind::file, "str"}};

// A value of a row that becomes a column: in fields inside fields.
struct Leaf {
  std::vector<std::size_t> path;
  StreamColumn column;
};

class Leaves {
 public:
  explicit Leaves(const std::string& subject) : subject_(subject) {}

  Status add(const std::vector<ArrowField>& fields, const std::string& above) {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const ArrowField& field = fields[i];
      if (field.name.empty() || !is_utf8(field.name)) return corrupt("{}: a column has no name", subject_);
      const std::string name = above.empty() ? field.name : format("{}.{}", above, field.name);
      path_.push_back(i);
      if (field.kind == Kind::fields) RETURN_IF_ERROR(add(field.children, name));
      if (field.kind != Kind::fields && field.kind != Kind::none) RETURN_IF_ERROR(add_leaf(field, name));
      path_.pop_back();
    }
    return {};
  }

  std::vector<Leaf> take() { return std::move(leaves_); }

 private:
  Status add_leaf(const ArrowField& field, const std::string& name) {
    Leaf leaf{.path = path_, .column = {.name = name, .encoding = {}, .ending = {}, .type = {}, .shape = {}}};
    StreamColumn& column = leaf.column;
    column.kind = ColumnKind::json;
    column.encoding = "json";
    for (const auto& [arrow, kind, encoding] : kKinds) {
      if (arrow != field.kind) continue;
      column.kind = kind;
      column.encoding = encoding;
    }
    if (column.kind == ColumnKind::json && holds_bytes(field)) {
      return invalid("{}: column '{}' is a list of bytes, which is not read", subject_, printable(name))
          .cure("write each of them in a column of its own");
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

double real_of(std::span<const std::byte> value) {
  if (value.size() == sizeof(double)) return load<double>(value, 0);
  if (value.size() == sizeof(float)) return static_cast<double>(load<float>(value, 0));
  const auto bits = load<std::uint16_t>(value, 0);
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  if (exponent == 31) size = fraction == 0 ? HUGE_VAL : std::nan("");
  return (bits & 0x8000) != 0 ? -size : size;
}

// Widened to eight bytes.
std::uint64_t whole_of(std::span<const std::byte> value, bool is_signed) {
  const bool is_negative = is_signed && (value.back() & std::byte{0x80}) != std::byte{0};
  std::uint64_t bits = is_negative ? ~std::uint64_t{0} : 0;
  std::memcpy(&bits, value.data(), value.size());
  return bits;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Lists as JSON. What JSON has no word for (NaN) is null.
class JsonText {
 public:
  explicit JsonText(const std::string& subject) : subject_(subject) {}

  /// Valid until the next call.
  Result<std::string_view> of(const ArrowColumn& column, std::uint64_t i) {
    text_.clear();
    values_ = 0;
    RETURN_IF_ERROR(put(column, i));
    return std::string_view(text_);
  }

 private:
  Status put(const ArrowColumn& column, std::uint64_t i) {
    if (++values_ > kMostInValue)
      return invalid("{}: a list has more than {} values, which is not read", subject_,
                     grouped(kMostInValue));
    if (column.is_null(i)) return add("null");
    switch (column.field->kind) {
      case Kind::integer:
        return add(format("{}", static_cast<std::int64_t>(whole_of(column.number(i), true))));
      case Kind::natural:
        return add(format("{}", whole_of(column.number(i), false)));
      case Kind::real:
        return add(json_text(Json(real_of(column.number(i)))));
      case Kind::boolean:
        return add(column.truth(i) ? "true" : "false");
      case Kind::text:
        return add(json_string(text_of(column.value(i))));
      case Kind::fields:
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
      RETURN_IF_ERROR(put(column.children[0], k));
    }
    return add("]");
  }

  Status put_fields(const ArrowColumn& column, std::uint64_t i) {
    text_ += '{';
    for (std::size_t k = 0; k < column.children.size(); ++k) {
      text_ += format("{}{}:", k > 0 ? "," : "", json_string(column.children[k].field->name));
      RETURN_IF_ERROR(put(column.children[k], i));
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

// Writes rows as those of other chunks lie: sizes, then values.
class RowWriter {
 public:
  RowWriter(const std::vector<Leaf>& leaves, StreamTarget to, const std::string& subject)
      : leaves_(leaves), to_(to), subject_(subject), json_(subject) {}

  Status add(const std::vector<ArrowColumn>& columns, std::uint64_t row) {
    row_.clear();
    const std::size_t sizes = held_.size();
    held_.resize(sizes + leaves_.size() * sizeof(std::uint32_t));
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      OK_OR_RETURN(size, put(columns, leaves_[i].path, row));
      std::memcpy(held_.data() + sizes + i * sizeof size, &size, sizeof size);
    }
    held_ += row_;
    if (held_.size() > to_.most - written_)
      return no_space("{}: unpacks to over {}, more than is free for it", subject_, rounded({to_.most}));
    offsets_.push_back(written_ + held_.size());
    return held_.size() < kHeld ? Status() : flush();
  }

  Status flush() {
    RETURN_IF_ERROR(to_.file.write(held_));
    written_ += held_.size();
    held_.clear();
    return {};
  }

  StreamOffsets take_offsets() { return std::move(offsets_); }

 private:
  Result<std::uint32_t> put(const std::vector<ArrowColumn>& columns, const std::vector<std::size_t>& path,
                            std::uint64_t row) {
    const ArrowColumn* column = &columns[path[0]];
    for (std::size_t i = 1; i < path.size() && !column->is_null(row); ++i)
      column = &column->children[path[i]];
    if (column->is_null(row)) return kNoStreamValue;
    const std::size_t before = row_.size();
    switch (column->field->kind) {
      case Kind::integer:
        put_number(whole_of(column->number(row), true));
        break;
      case Kind::natural:
        put_number(whole_of(column->number(row), false));
        break;
      case Kind::real:
        put_number(real_of(column->number(row)));
        break;
      case Kind::boolean:
        row_ += static_cast<char>(column->truth(row));
        break;
      case Kind::bytes:
      case Kind::text:
        row_ += text_of(column->value(row));
        break;
      default: {
        OK_OR_RETURN(text, json_.of(*column, row));
        row_ += text;
      }
    }
    const std::size_t size = row_.size() - before;
    if (size >= kNoStreamValue) return invalid("{}: a value has over 4 GiB", subject_);
    return static_cast<std::uint32_t>(size);
  }

  template <typename T>
  void put_number(T value) {
    row_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  const std::vector<Leaf>& leaves_;
  StreamTarget to_;
  const std::string& subject_;
  JsonText json_;
  std::string row_;
  std::string held_;
  std::uint64_t written_ = 0;
  StreamOffsets offsets_ = {0};
};

}  // namespace

Result<std::optional<StreamTable>> unpack_stream_table(const StreamFile& from, std::uint64_t samples,
                                                       StreamTarget to, const Progress& progress) {
  const std::string& subject = from.subject;
  OK_OR_RETURN(place, table_in(from));
  if (!place) return std::optional<StreamTable>();
  std::vector<std::byte> bytes(place->bytes);
  RETURN_IF_ERROR(from.read(place->offset, bytes));
  OK_OR_RETURN(table, ArrowTable::open(bytes, subject));
  Leaves found(subject);
  RETURN_IF_ERROR(found.add(table.fields(), ""));
  const std::vector<Leaf> leaves = found.take();
  RowWriter writer(leaves, to, subject);
  std::uint64_t rows = 0;
  for (;;) {
    OK_OR_RETURN(columns, table.next());
    if (!columns) break;
    if (progress.stop_requested()) return cancelled("{}: interrupted while it was unpacked", subject);
    rows += table.rows();
    if (rows > samples) break;
    for (std::uint64_t row = 0; row < table.rows(); ++row) RETURN_IF_ERROR(writer.add(*columns, row));
  }
  if (rows != samples) {
    return corrupt("{}: its Arrow table has {} rows{}, expected {}", subject, rows,
                   rows > samples ? " or more" : "", samples);
  }
  RETURN_IF_ERROR(writer.flush());
  StreamTable made{.offsets = writer.take_offsets(), .columns = {}};
  for (const Leaf& leaf : leaves) made.columns.push_back(leaf.column);
  return std::optional(std::move(made));
}

}  // namespace stoker::formats
