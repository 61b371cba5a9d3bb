#include "parquet/schema/footer.h"

#include <algorithm>
#include <utility>

#include "parquet/thrift/thrift.h"

namespace stoker::parquet {

namespace {

using Field = ThriftReader::Field;
using Wire = ThriftReader::Type;

constexpr std::uint64_t kRowLimit = 4'000'000'000;
constexpr std::string_view kHubMetadata = "huggingface";

ParquetStatistics read_statistics(ThriftReader& reader) {
  ParquetStatistics statistics;
  reader.structure([&](const Field& field) {
    std::optional<std::string>* const texts[] = {&statistics.deprecated_max,
                                                 &statistics.deprecated_min,
                                                 nullptr,
                                                 nullptr,
                                                 &statistics.max,
                                                 &statistics.min};
    if (field.id == 3 && is_integer(field)) {
      statistics.null_count = reader.integer();
      return true;
    }
    const bool is_known = field.id >= 1 && field.id <= static_cast<std::int32_t>(std::size(texts));
    if (!is_known || texts[field.id - 1] == nullptr || field.type != Wire::binary) return false;
    *texts[field.id - 1] = reader.text();
    return true;
  });
  return statistics;
}

void read_metadata(ThriftReader& reader, ParquetChunk& chunk) {
  std::int64_t data = -1;
  std::int64_t dictionary = -1;
  reader.structure([&](const Field& field) {
    if (field.id == 12 && field.type == Wire::structure) {
      chunk.statistics = read_statistics(reader);
      return true;
    }
    if (!is_integer(field)) return false;
    std::int64_t* const into = field.id == 1    ? &chunk.type
                               : field.id == 4  ? &chunk.codec
                               : field.id == 5  ? &chunk.values
                               : field.id == 7  ? &chunk.bytes
                               : field.id == 9  ? &data
                               : field.id == 11 ? &dictionary
                                                : nullptr;
    if (into != nullptr) *into = reader.integer();
    return into != nullptr;
  });
  chunk.begin = dictionary > 0 ? std::min(data, dictionary) : data;
}

ParquetChunk read_chunk(ThriftReader& reader) {
  ParquetChunk chunk;
  reader.structure([&](const Field& field) {
    if (field.id == 1 && field.type == Wire::binary) {
      chunk.is_external = !reader.text().empty();
      return true;
    }
    chunk.is_encrypted = chunk.is_encrypted || field.id == 8;
    std::int64_t* const place = field.id == 4   ? &chunk.offset_index.offset
                                : field.id == 5 ? &chunk.offset_index.bytes
                                : field.id == 6 ? &chunk.column_index.offset
                                : field.id == 7 ? &chunk.column_index.bytes
                                                : nullptr;
    if (place != nullptr && is_integer(field)) {
      *place = reader.integer();
      return true;
    }
    if (field.id != 3 || field.type != Wire::structure) return false;
    read_metadata(reader, chunk);
    return true;
  });
  return chunk;
}

ParquetGroup read_group(ThriftReader& reader, bool& is_damaged) {
  ParquetGroup group;
  std::int64_t rows = 0;
  reader.structure([&](const Field& field) {
    if (field.id == 1 && field.type == Wire::list) {
      reader.list(Wire::structure, [&] { group.chunks.push_back(read_chunk(reader)); });
    } else if (field.id == 3 && is_integer(field)) {
      rows = reader.integer();
    } else {
      return false;
    }
    return true;
  });
  is_damaged = is_damaged || rows < 0;
  group.rows = static_cast<std::uint64_t>(rows);
  return group;
}

// A structure with one field, whose number is the order.
bool read_order(ThriftReader& reader) {
  bool is_known = false;
  reader.structure([&](const Field& field) {
    is_known = field.id == 1 || field.id == 2;
    return false;
  });
  return is_known;
}

std::pair<std::string, std::string> read_key_value(ThriftReader& reader) {
  std::pair<std::string, std::string> pair;
  reader.structure([&](const Field& field) {
    if (field.type != Wire::binary || (field.id != 1 && field.id != 2)) return false;
    (field.id == 1 ? pair.first : pair.second) = reader.text();
    return true;
  });
  return pair;
}

}  // namespace

Result<ParquetFooter> read_footer(std::span<const std::byte> bytes, std::string_view subject) {
  ThriftReader reader(bytes);
  ParquetFooter footer;
  std::vector<SchemaElement> schema;
  std::int64_t rows = -1;
  bool is_damaged = false;
  reader.structure([&](const Field& field) {
    if (field.id == 2 && field.type == Wire::list) {
      reader.list(Wire::structure, [&] { schema.push_back(read_schema_element(reader)); });
    } else if (field.id == 3 && is_integer(field)) {
      rows = reader.integer();
    } else if (field.id == 4 && field.type == Wire::list) {
      reader.list(Wire::structure, [&] { footer.groups.push_back(read_group(reader, is_damaged)); });
    } else if (field.id == 5 && field.type == Wire::list) {
      reader.list(Wire::structure, [&] {
        auto [key, value] = read_key_value(reader);
        if (key == kHubMetadata) footer.hub_metadata = std::move(value);
      });
    } else if (field.id == 6 && field.type == Wire::binary) {
      const std::string writer = reader.text();
      // Without a version it is one of the first.
      footer.has_short_chunks = writer == "parquet-mr" || writer.starts_with("parquet-mr version 1.0.") ||
                                writer.starts_with("parquet-mr version 1.1.") ||
                                writer.starts_with("parquet-mr version 1.2.");
    } else if (field.id == 7 && field.type == Wire::list) {
      reader.list(Wire::structure, [&] { footer.has_order.push_back(read_order(reader)); });
    } else {
      return false;
    }
    return true;
  });
  const Status damaged = corrupt("{}: its footer is damaged", subject);
  if (reader.is_damaged() || is_damaged || rows < 0) return damaged;
  footer.rows = static_cast<std::uint64_t>(rows);
  if (footer.rows > kRowLimit) return damaged;
  auto leaves = schema_leaves(schema);
  if (!leaves) return damaged;
  footer.leaves = std::move(*leaves);
  footer.has_order.resize(footer.leaves.size());
  std::uint64_t in_groups = 0;
  for (const ParquetGroup& group : footer.groups) {
    if (group.rows > kRowLimit - in_groups || group.chunks.size() != footer.leaves.size()) return damaged;
    in_groups += group.rows;
  }
  // Some writers of 2019 left the file's own number at 0.
  if (footer.rows == 0) footer.rows = in_groups;
  if (in_groups > footer.rows) return damaged;
  return footer;
}

}  // namespace stoker::parquet
