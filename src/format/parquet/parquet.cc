#include "format/parquet/parquet.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "format/parquet/column.h"
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
      if (path.size() == 1) chunk.name = path[0];
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

void read_group(ThriftReader& reader, std::vector<ParquetFile::Chunk>& chunks) {
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
  for (std::size_t i = first; i < chunks.size(); ++i) chunks[i].rows = static_cast<std::uint64_t>(rows);
}

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
      reader.list(Type::structure, [&] { read_group(reader, chunks_); });
    } else {
      return false;
    }
    return true;
  });
  if (reader.is_damaged() || rows < 0 || static_cast<std::uint64_t>(rows) > kRowLimit)
    return corrupt("{}: its footer is damaged", subject_);
  rows_ = static_cast<std::uint64_t>(rows);
  // Columns are the root's children that have none themselves and do not repeat.
  std::map<std::string, bool> optional;
  for (std::size_t i = 1; i < schema.size();) {
    const Element& child = schema[i];
    if (child.children == 0 && child.repetition <= 1) {
      names_.push_back(child.name);
      optional[child.name] = child.repetition == 1;
    }
    for (std::int64_t open = 1; open > 0 && i < schema.size(); ++i) {
      if (schema[i].children < 0 || schema[i].children > kMostChildren)
        return corrupt("{}: its footer is damaged", subject_);
      open += schema[i].children - 1;
    }
  }
  for (Chunk& chunk : chunks_) {
    const auto found = optional.find(chunk.name);
    if (found == optional.end())
      chunk.name.clear();
    else
      chunk.is_optional = found->second;
  }
  return {};
}

Result<std::vector<ParquetColumn>> ParquetFile::read(std::span<const std::string> columns,
                                                     const ParquetLimits& limits) const {
  std::vector<ParquetColumn> found;
  std::uint64_t left = limits.values.value;
  for (const std::string& name : columns) {
    ParquetColumn& column = found.emplace_back();
    column.name = name;
    const std::string subject = format("{}: column '{}'", subject_, printable(name));
    for (const Chunk& chunk : chunks_) {
      if (chunk.name != name) continue;
      if (chunk.begin < 0 || chunk.bytes < 0 || static_cast<std::uint64_t>(chunk.begin) > size_ ||
          static_cast<std::uint64_t>(chunk.bytes) > size_ - static_cast<std::uint64_t>(chunk.begin)) {
        return corrupt("{}: lies beyond the end", subject);
      }
      std::vector<std::byte> bytes(static_cast<std::size_t>(chunk.bytes));
      RETURN_IF_ERROR(read_(static_cast<std::uint64_t>(chunk.begin), bytes));
      RETURN_IF_ERROR(read_column_chunk(chunk, bytes, {subject, &left}, column.values));
    }
    if (column.values.size() != rows_) {
      return corrupt("{}: has {} values, the file {} rows", subject, column.values.size(), rows_);
    }
  }
  return found;
}

}  // namespace stoker::formats
