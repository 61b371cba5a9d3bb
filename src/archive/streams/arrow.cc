#include "archive/streams/arrow.h"

#include <algorithm>
#include <optional>

#include <zstd.h>

#include "archive/streams/flat_table.h"
#include "codec/load.h"
#include "stoker/bytes.h"
#include "stoker/text.h"

namespace stoker::archive {

namespace {

using Kind = ArrowField::Kind;

constexpr std::string_view kFileMagic("ARROW1\0\0", 8);
constexpr std::uint32_t kContinuation = 0xFFFFFFFF;
constexpr std::uint64_t kMaxUnpacked = 1u << 30;  // per batch
constexpr std::uint64_t kMaxFields = 4096;
constexpr int kDeepestField = 16;

// The type of a message, from its metadata.
enum Header : std::uint8_t { kSchema = 1, kDictionary = 2, kRecordBatch = 3 };

// Field numbers of Arrow's tables (format/Message.fbs, format/Schema.fbs).
namespace message {
constexpr unsigned kType = 1, kHeader = 2, kBodyLength = 3;
}
namespace schema {
constexpr unsigned kEndianness = 0, kFields = 1;
}
namespace field {
constexpr unsigned kName = 0, kTypeType = 2, kType = 3, kDictionary = 4, kChildren = 5;
}
namespace batch {
constexpr unsigned kLength = 0, kNodes = 1, kBuffers = 2, kCompression = 3;
}

// Reads the names and layouts of the fields of a schema.
class SchemaReader {
 public:
  explicit SchemaReader(const std::string& subject) : subject_(subject) {}

  Status fields(const FlatTable& table, unsigned number, std::vector<ArrowField>& into, int depth) {
    if (depth > kDeepestField)
      return corrupt("{}: Arrow fields nested over {} deep", subject_, kDeepestField);
    const FlatVector found = table.vector(number, sizeof(std::uint32_t));
    count_ += found.count;
    if (count_ > kMaxFields) return corrupt("{}: over {} Arrow fields", subject_, kMaxFields);
    for (std::uint64_t i = 0; i < found.count; ++i) {
      STOKER_ASSIGN_OR_RETURN(one, read_field(table.element(found, i), depth));
      into.push_back(std::move(one));
    }
    return {};
  }

 private:
  Result<ArrowField> read_field(const FlatTable& table, int depth) {
    ArrowField made{.name = std::string(table.text(field::kName)), .children = {}};
    STOKER_RETURN_IF_ERROR(fields(table, field::kChildren, made.children, depth + 1));
    if (table.has(field::kDictionary)) return unsupported(made, "with a dictionary");
    const FlatTable type = table.table(field::kType);
    const auto number = table.number<std::uint8_t>(field::kTypeType);
    switch (number) {
      case 1:
        return made;
      case 2:
        return integer_field(std::move(made), type);
      case 3: {
        const auto precision = type.number<std::int16_t>(0);
        if (precision < 0 || precision > 2) return unsupported(made, "of fractions");
        return with_kind(std::move(made), Kind::floating, 2u << precision);
      }
      case 6:
        return with_kind(std::move(made), Kind::boolean, 0);
      case 4:
      case 19:
        return with_kind(std::move(made), Kind::bytes, number == 19 ? 8 : 4);
      case 5:
      case 20:
        return with_kind(std::move(made), Kind::text, number == 20 ? 8 : 4);
      case 12:
      case 16:
      case 21:
        return list_field(std::move(made), number, type);
      case 13:
        return with_kind(std::move(made), Kind::structure, 0);
      default:
        return unsupported(made, format("of type {}", number));
    }
  }

  static ArrowField with_kind(ArrowField made, Kind kind, std::uint32_t width) {
    made.kind = kind;
    made.width = width;
    return made;
  }
  Result<ArrowField> integer_field(ArrowField made, const FlatTable& type) const {
    const auto bits = type.number<std::int32_t>(0);
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return unsupported(made, "of whole numbers");
    const bool is_signed = type.number<std::uint8_t>(1) != 0;
    return with_kind(std::move(made), is_signed ? Kind::integer : Kind::unsigned_integer,
                     static_cast<std::uint32_t>(bits) / 8);
  }
  Result<ArrowField> list_field(ArrowField made, std::uint8_t number, const FlatTable& type) const {
    if (made.children.size() != 1)
      return corrupt("{}: an Arrow list of {} fields", subject_, made.children.size());
    if (number != 16) return with_kind(std::move(made), Kind::list, number == 21 ? 8 : 4);
    const auto size = type.number<std::int32_t>(0);
    if (size < 0) return corrupt("{}: Arrow lists of {} values", subject_, size);
    return with_kind(std::move(made), Kind::fixed_list, static_cast<std::uint32_t>(size));
  }
  Status unsupported(const ArrowField& made, std::string_view what) const {
    return invalid("{}: Arrow column '{}' {} is not read", subject_, printable(made.name), what)
        .cure("write numbers, booleans, text, bytes, lists and dicts of them");
  }

  const std::string& subject_;
  std::uint64_t count_ = 0;
};

std::uint64_t offset_at(const ArrowColumn& column, std::uint64_t i) {
  return column.field->width == 8 ? codec::load<std::uint64_t>(column.offsets, i * 8)
                                  : codec::load<std::uint32_t>(column.offsets, i * 4);
}

}  // namespace

bool ArrowColumn::is_null(std::uint64_t i) const {
  if (field->kind == Kind::none) return true;
  return !validity.empty() && (static_cast<unsigned>(validity[i / 8]) >> i % 8 & 1) == 0;
}

bool ArrowColumn::boolean(std::uint64_t i) const {
  return (static_cast<unsigned>(data[i / 8]) >> i % 8 & 1) != 0;
}

std::span<const std::byte> ArrowColumn::value(std::uint64_t i) const {
  const std::uint64_t begin = offset_at(*this, i);
  return data.subspan(begin, offset_at(*this, i + 1) - begin);
}

std::pair<std::uint64_t, std::uint64_t> ArrowColumn::range(std::uint64_t i) const {
  if (field->kind == Kind::fixed_list) return {i * field->width, (i + 1) * field->width};
  return {offset_at(*this, i), offset_at(*this, i + 1)};
}

struct ArrowTable::Message {
  std::uint8_t type = 0;  // 0: the end
  FlatBytes metadata;
  std::uint64_t header = 0;
  std::span<const std::byte> body;
  FlatTable table() { return FlatTable::root(metadata).table(message::kHeader); }
};

// Reads the next message: u32 continuation, u32 bytes of metadata, metadata, body. Before Arrow 0.15,
// without the first.
Result<ArrowTable::Message> ArrowTable::message() {
  const auto torn = [&] { return corrupt("{}: byte {} of its Arrow table: torn", *subject_, at_); };
  const std::size_t begin = at_;
  std::uint32_t size = 0;
  for (int word = 0; word < 2 && (word == 0 || size == kContinuation); ++word) {
    if (bytes_.size() - at_ < sizeof size)
      return begin == bytes_.size() ? Result<Message>(Message()) : torn();
    size = codec::load<std::uint32_t>(bytes_, at_);
    at_ += sizeof size;
  }
  if (size == 0) return Message();
  if (size > bytes_.size() - at_) return torn();
  Message found;
  found.metadata.bytes = bytes_.subspan(at_, size);
  at_ += size;
  const FlatTable table = FlatTable::root(found.metadata);
  found.type = table.number<std::uint8_t>(message::kType);
  const auto body = table.number<std::int64_t>(message::kBodyLength);
  if (found.metadata.is_damaged || body < 0 || static_cast<std::uint64_t>(body) > bytes_.size() - at_)
    return torn();
  found.body = bytes_.subspan(at_, static_cast<std::size_t>(body));
  at_ += found.body.size();
  return found;
}

Result<ArrowTable> ArrowTable::open(std::span<const std::byte> bytes, const std::string& subject) {
  ArrowTable opened(bytes, subject);
  const std::string_view begin(reinterpret_cast<const char*>(bytes.data()),
                               std::min(bytes.size(), kFileMagic.size()));
  if (begin == kFileMagic) opened.at_ = kFileMagic.size();
  STOKER_ASSIGN_OR_RETURN(first, opened.message());
  if (first.type != kSchema) return corrupt("{}: its Arrow table has no schema", subject);
  const FlatTable table = first.table();
  if (table.number<std::int16_t>(schema::kEndianness) != 0)
    return invalid("{}: its Arrow table is big-endian, which is not supported", subject);
  STOKER_RETURN_IF_ERROR(SchemaReader(subject).fields(table, schema::kFields, opened.fields_, 0));
  if (first.metadata.is_damaged) return corrupt("{}: the schema of its Arrow table is damaged", subject);
  return opened;
}

// Assigns the buffers and lengths of one batch to its columns, in order.
class ArrowTable::Batch {
 public:
  Batch(ArrowTable& into, Message& message) : into_(into), message_(message), table_(message.table()) {
    nodes_ = table_.vector(batch::kNodes, 16);
    buffers_ = table_.vector(batch::kBuffers, 16);
    is_packed_ = table_.has(batch::kCompression);
  }

  Status read() {
    const auto length = table_.number<std::int64_t>(batch::kLength);
    if (is_packed_) {
      const FlatTable packing = table_.table(batch::kCompression);
      if (packing.number<std::int8_t>(0) != 1)
        return invalid("{}: its Arrow table is compressed by LZ4; only zstd is supported", *into_.subject_);
    }
    if (message_.metadata.is_damaged || length < 0) return damaged();
    into_.rows_ = static_cast<std::uint64_t>(length);
    for (const ArrowField& field : into_.fields_) {
      ArrowColumn& column = into_.columns_.emplace_back();
      STOKER_RETURN_IF_ERROR(read_column(field, column));
      if (column.length != into_.rows_) return damaged();
    }
    return {};
  }

 private:
  Status damaged() const { return corrupt("{}: a batch of its Arrow table is damaged", *into_.subject_); }

  Status read_column(const ArrowField& field, ArrowColumn& column) {
    column.field = &field;
    if (node_ >= nodes_.count) return damaged();
    column.length = message_.metadata.at<std::uint64_t>(nodes_.begin + 16 * node_++);
    if (column.length >> 32 != 0) return damaged();
    if (field.kind == Kind::none) return {};
    STOKER_ASSIGN_OR_RETURN(validity, buffer());
    column.validity = validity;
    const std::uint64_t bits = (column.length + 7) / 8;
    if (!validity.empty() && validity.size() < bits) return damaged();
    switch (field.kind) {
      case Kind::boolean:
        return read_data(column, bits);
      case Kind::integer:
      case Kind::unsigned_integer:
      case Kind::floating:
        return read_data(column, column.length * field.width);
      case Kind::bytes:
      case Kind::text:
        return read_values(column);
      default:
        return read_children(field, column);
    }
  }

  Status read_data(ArrowColumn& column, std::uint64_t at_least) {
    STOKER_ASSIGN_OR_RETURN(data, buffer());
    column.data = data;
    return data.size() < at_least ? damaged() : Status();
  }

  Status read_values(ArrowColumn& column) {
    STOKER_ASSIGN_OR_RETURN(offsets, buffer());
    column.offsets = offsets;
    STOKER_ASSIGN_OR_RETURN(data, buffer());
    column.data = data;
    return check_offsets(column, data.size());
  }

  Status read_children(const ArrowField& field, ArrowColumn& column) {
    if (field.kind == Kind::list) {
      STOKER_ASSIGN_OR_RETURN(offsets, buffer());
      column.offsets = offsets;
    }
    column.children.reserve(field.children.size());
    for (const ArrowField& child : field.children) {
      STOKER_RETURN_IF_ERROR(read_column(child, column.children.emplace_back()));
    }
    if (field.kind == Kind::list) return check_offsets(column, column.children[0].length);
    const std::uint64_t each = field.kind == Kind::fixed_list ? field.width : 1;
    for (const ArrowColumn& child : column.children) {
      if (child.length / std::max<std::uint64_t>(1, each) < (each == 0 ? 0 : column.length)) return damaged();
    }
    return {};
  }

  Status check_offsets(const ArrowColumn& column, std::uint64_t end) const {
    if (column.length == 0) return {};
    if (column.offsets.size() / column.field->width <= column.length) return damaged();
    std::uint64_t before = offset_at(column, 0);
    for (std::uint64_t i = 1; i <= column.length; ++i) {
      const std::uint64_t next = offset_at(column, i);
      if (next < before) return damaged();
      before = next;
    }
    return before > end ? damaged() : Status();
  }

  Result<std::span<const std::byte>> buffer() {
    if (buffer_ >= buffers_.count) return damaged();
    const std::uint64_t entry = buffers_.begin + 16 * buffer_++;
    const auto offset = message_.metadata.at<std::uint64_t>(entry);
    const auto bytes = message_.metadata.at<std::uint64_t>(entry + 8);
    if (offset > message_.body.size() || bytes > message_.body.size() - offset) return damaged();
    const std::span<const std::byte> found = message_.body.subspan(offset, bytes);
    return is_packed_ && !found.empty() ? unpacked(found) : found;
  }

  // i64 unpacked size, or -1 for an uncompressed buffer, then the zstd frame.
  Result<std::span<const std::byte>> unpacked(std::span<const std::byte> packed) {
    if (packed.size() < sizeof(std::int64_t)) return damaged();
    const auto bytes = codec::load<std::int64_t>(packed, 0);
    const std::span<const std::byte> frame = packed.subspan(sizeof bytes);
    if (bytes == -1) return frame;
    if (bytes < 0 || static_cast<std::uint64_t>(bytes) > kMaxUnpacked - total_) {
      return corrupt("{}: a batch of its Arrow table unpacks to over {}", *into_.subject_,
                     rounded({kMaxUnpacked}));
    }
    total_ += static_cast<std::uint64_t>(bytes);
    const unsigned long long content_size = ZSTD_getFrameContentSize(frame.data(), frame.size());
    const bool is_known = content_size != ZSTD_CONTENTSIZE_UNKNOWN;
    if (content_size == ZSTD_CONTENTSIZE_ERROR ||
        (is_known && content_size != static_cast<unsigned long long>(bytes)))
      return damaged();
    std::vector<std::byte>& out = into_.unpacked_.emplace_back(static_cast<std::size_t>(bytes));
    const std::size_t found = ZSTD_decompress(out.data(), out.size(), frame.data(), frame.size());
    if (ZSTD_isError(found) != 0 || found != out.size()) return damaged();
    return std::span<const std::byte>(out);
  }

  ArrowTable& into_;
  Message& message_;
  FlatTable table_;
  FlatVector nodes_;
  FlatVector buffers_;
  bool is_packed_ = false;
  std::uint64_t node_ = 0;
  std::uint64_t buffer_ = 0;
  std::uint64_t total_ = 0;
};

Result<const std::vector<ArrowColumn>*> ArrowTable::next() {
  columns_.clear();
  unpacked_.clear();
  STOKER_ASSIGN_OR_RETURN(found, message());
  if (found.type == 0) return static_cast<const std::vector<ArrowColumn>*>(nullptr);
  if (found.type != kRecordBatch)
    return corrupt("{}: its Arrow table holds message {}", *subject_, found.type);
  STOKER_RETURN_IF_ERROR(Batch(*this, found).read());
  return &columns_;
}

}  // namespace stoker::archive
