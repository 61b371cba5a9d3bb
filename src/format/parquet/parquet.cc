#include "format/parquet/parquet.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "format/parquet/column.h"
#include "format/parquet/page.h"
#include "format/parquet/thrift.h"

namespace stoker::formats {

namespace {

using Field = ThriftReader::Field;
using Type = ThriftReader::Type;

constexpr std::uint64_t kTailBytes = 8;  // length of the footer, magic
constexpr std::uint64_t kMagicBytes = 4;
constexpr std::uint64_t kFooterLimit = 256u << 20;
constexpr std::int64_t kMostChildren = 1 << 20;
constexpr std::uint64_t kRowLimit = 4'000'000'000;

bool is_integer(const Field& field) { return field.type >= Type::byte && field.type <= Type::i64; }

// An element of the schema, which lists the tree depth first.
struct Element {
  std::string name;
  std::int64_t repetition = 0;
  std::int64_t children = 0;
};

Element read_element(ThriftReader& reader) {
  Element element;
  reader.structure([&](const Field& field) {
    if (field.id == 3 && is_integer(field))
      element.repetition = reader.integer();
    else if (field.id == 4 && field.type == Type::binary)
      element.name = reader.text();
    else if (field.id == 5 && is_integer(field))
      element.children = reader.integer();
    else
      return false;
    return true;
  });
  return element;
}

void read_metadata(ThriftReader& reader, ParquetFile::Chunk& chunk) {
  std::int64_t data = -1;
  std::int64_t dictionary = -1;
  reader.structure([&](const Field& field) {
    if (field.id == 3 && field.type == Type::list) {
      std::vector<std::string> path;
      reader.list(Type::binary, [&] { path.push_back(reader.text()); });
      chunk.name = join(path, ".");
      return true;
    }
    if (!is_integer(field)) return false;
    switch (field.id) {
      case 1:
        chunk.type = reader.integer();
        return true;
      case 4:
        chunk.codec = reader.integer();
        return true;
      case 7:
        chunk.bytes = reader.integer();
        return true;
      case 9:
        data = reader.integer();
        return true;
      case 11:
        dictionary = reader.integer();
        return true;
      default:
        return false;
    }
  });
  chunk.begin = dictionary > 0 ? std::min(data, dictionary) : data;
}

ParquetFile::Chunk read_chunk(ThriftReader& reader) {
  ParquetFile::Chunk chunk;
  reader.structure([&](const Field& field) {
    if (field.id != 3 || field.type != Type::structure) return false;
    read_metadata(reader, chunk);
    return true;
  });
  return chunk;
}

void take_group(ThriftReader& reader, std::vector<ParquetFile::Chunk>& chunks,
                std::vector<std::uint64_t>& group_rows) {
  const std::size_t first = chunks.size();
  std::int64_t rows = 0;
  reader.structure([&](const Field& field) {
    if (field.id == 1 && field.type == Type::list) {
      reader.list(Type::structure, [&] { chunks.push_back(read_chunk(reader)); });
    } else if (field.id == 3 && is_integer(field)) {
      rows = reader.integer();
    } else {
      return false;
    }
    return true;
  });
  for (std::size_t i = first; i < chunks.size(); ++i) {
    chunks[i].rows = static_cast<std::uint64_t>(rows);
    chunks[i].group = group_rows.size();
  }
  group_rows.push_back(static_cast<std::uint64_t>(rows));
}

constexpr std::int64_t kRequired = 0;
constexpr std::int64_t kOptional = 1;

// The leaves of the schema that lie in no list, with the definition level of a value that is there.
class Leaves {
 public:
  explicit Leaves(const std::vector<Element>& schema) : schema_(schema) {}

  // False for a schema that does not hold.
  bool walk() {
    if (schema_.empty()) return true;
    for (std::int64_t i = 0; i < schema_[0].children; ++i) {
      if (!take("", 0, false, 0)) return false;
    }
    return at_ == schema_.size();
  }

  std::vector<std::string> names;
  std::vector<std::string> lists;
  std::map<std::string, unsigned> definition;

 private:
  static constexpr int kMostDepth = 32;

  bool take(const std::string& parent, unsigned level, bool is_repeated, int depth) {
    if (at_ >= schema_.size() || depth > kMostDepth) return false;
    const Element& element = schema_[at_++];
    if (element.children < 0 || element.children > kMostChildren) return false;
    const std::string name = parent.empty() ? element.name : parent + "." + element.name;
    is_repeated = is_repeated || (element.repetition != kRequired && element.repetition != kOptional);
    level += element.repetition == kOptional ? 1 : 0;
    for (std::int64_t i = 0; i < element.children; ++i) {
      if (!take(name, level, is_repeated, depth + 1)) return false;
    }
    if (element.children > 0) return true;
    if (is_repeated) lists.push_back(name);
    if (is_repeated) return true;
    names.push_back(name);
    return definition.emplace(name, level).second;
  }

  const std::vector<Element>& schema_;
  std::size_t at_ = 1;
};

}  // namespace

Result<ParquetFile> ParquetFile::open(ReadAt read, std::uint64_t size, std::string subject) {
  ParquetFile file(std::move(read), size, std::move(subject));
  const Status none = corrupt("{}: is no Parquet file, or cut off", file.subject_);
  if (size < kMagicBytes + kTailBytes) return none;
  std::array<std::byte, kTailBytes> tail{};
  RETURN_IF_ERROR(file.read_(size - kTailBytes, tail));
  std::uint32_t length = 0;
  std::memcpy(&length, tail.data(), sizeof length);
  const std::string_view magic(reinterpret_cast<const char*>(tail.data()) + sizeof length, kMagicBytes);
  if (magic == "PARE") return invalid("{}: is encrypted", file.subject_);
  if (magic != "PAR1" || length > size - kMagicBytes - kTailBytes) return none;
  if (length > kFooterLimit)
    return invalid("{}: has a footer of {} bytes (at most 256 MiB)", file.subject_, length);
  std::vector<std::byte> footer(length);
  RETURN_IF_ERROR(file.read_(size - kTailBytes - length, footer));
  RETURN_IF_ERROR(file.take_footer(footer));
  return file;
}

Status ParquetFile::take_footer(std::span<const std::byte> footer) {
  ThriftReader reader(footer);
  std::vector<Element> schema;
  std::int64_t rows = -1;
  reader.structure([&](const Field& field) {
    if (field.id == 2 && field.type == Type::list) {
      reader.list(Type::structure, [&] { schema.push_back(read_element(reader)); });
    } else if (field.id == 3 && is_integer(field)) {
      rows = reader.integer();
    } else if (field.id == 4 && field.type == Type::list) {
      reader.list(Type::structure, [&] { take_group(reader, chunks_, group_rows_); });
    } else {
      return false;
    }
    return true;
  });
  if (reader.is_damaged() || rows < 0 || static_cast<std::uint64_t>(rows) > kRowLimit)
    return corrupt("{}: its footer is damaged", subject_);
  rows_ = static_cast<std::uint64_t>(rows);
  std::uint64_t in_groups = 0;
  for (const std::uint64_t group : group_rows_) {
    if (group > rows_ - in_groups) return corrupt("{}: its footer is damaged", subject_);
    in_groups += group;
  }
  Leaves leaves(schema);
  if (!leaves.walk()) return corrupt("{}: its footer is damaged", subject_);
  names_ = std::move(leaves.names);
  lists_ = std::move(leaves.lists);
  for (Chunk& chunk : chunks_) {
    const auto found = leaves.definition.find(chunk.name);
    if (found == leaves.definition.end())
      chunk.name.clear();
    else
      chunk.definition = found->second;
  }
  return {};
}

std::string ParquetFile::shown(std::string_view column) const {
  return format("{}: column '{}'", subject_, printable(column));
}

ParquetFile::Kind ParquetFile::kind(std::string_view column) const {
  for (const Chunk& chunk : chunks_) {
    if (chunk.name != column) continue;
    if (chunk.type == kParquetByteArray) return Kind::bytes;
    return chunk.type == kParquetInt32 || chunk.type == kParquetInt64 ? Kind::integers : Kind::other;
  }
  return Kind::bytes;
}

Status ParquetFile::check_place(const Chunk& chunk) const {
  const bool lies_inside =
      chunk.begin >= 0 && chunk.bytes >= 0 && static_cast<std::uint64_t>(chunk.begin) <= size_ &&
      static_cast<std::uint64_t>(chunk.bytes) <= size_ - static_cast<std::uint64_t>(chunk.begin);
  return lies_inside ? Status() : corrupt("{}: lies beyond the end", shown(chunk.name));
}

Result<std::vector<std::byte>> ParquetFile::chunk_bytes(const Chunk& chunk) const {
  RETURN_IF_ERROR(check_place(chunk));
  std::vector<std::byte> bytes(static_cast<std::size_t>(chunk.bytes));
  RETURN_IF_ERROR(read_(static_cast<std::uint64_t>(chunk.begin), bytes));
  return bytes;
}

Result<std::vector<std::string>> ParquetFile::read_group(std::size_t group, const std::string& column,
                                                         const ParquetLimits& limits) const {
  std::vector<std::string> values;
  std::uint64_t left = limits.values.value;
  const std::string subject = shown(column);
  for (const Chunk& chunk : chunks_) {
    if (chunk.name != column || chunk.group != group) continue;
    OK_OR_RETURN(bytes, chunk_bytes(chunk));
    RETURN_IF_ERROR(read_column_chunk(chunk, bytes, {subject, &left}, values));
  }
  if (values.size() == group_rows_[group]) return values;
  return corrupt("{}: has {} values, the row group {} rows", subject, values.size(), group_rows_[group]);
}

Result<std::vector<ParquetColumn>> ParquetFile::read(std::span<const std::string> columns,
                                                     const ParquetLimits& limits) const {
  std::vector<ParquetColumn> found;
  std::uint64_t left = limits.values.value;
  for (const std::string& name : columns) {
    ParquetColumn& column = found.emplace_back();
    column.name = name;
    const std::string subject = shown(name);
    for (const Chunk& chunk : chunks_) {
      if (chunk.name != name) continue;
      OK_OR_RETURN(bytes, chunk_bytes(chunk));
      RETURN_IF_ERROR(read_column_chunk(chunk, bytes, {subject, &left}, column.values));
    }
    if (column.values.size() != rows_) {
      return corrupt("{}: has {} values, the file {} rows", subject, column.values.size(), rows_);
    }
  }
  return found;
}

}  // namespace stoker::formats
