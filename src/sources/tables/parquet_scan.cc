#include "sources/tables/parquet_scan.h"

#include <algorithm>

#include "codec/chunks/chunk_reader.h"
#include "dataset/shard_source.h"
#include "image/decode/decode.h"
#include "sources/foreign_example.h"
#include "sources/tables/table_scan.h"

namespace stoker::sources {

namespace {

using parquet::ParquetFile;
using Places = std::vector<ParquetFile::ValueLocation>;

constexpr std::string_view kKey = "__key__";
constexpr std::string_view kLabel = "cls";
constexpr std::uint64_t kKeyLimit = 4096;

// The columns of one file: places of bytes, and numbers as text.
struct Columns {
  std::vector<std::pair<std::string, Places>> bytes;
  std::vector<std::pair<std::string, std::vector<std::string>>> numbers;
  std::vector<std::string> others;  // lists, and columns with neither bytes nor integers
  std::uint64_t rows = 0;
};

bool holds_bytes(const parquet::ParquetLeaf& leaf) {
  return leaf.type == parquet::ParquetLeaf::Type::bytes && leaf.lists == 0;
}

// Number and name of the file's columns whose values are files.
std::vector<std::pair<std::size_t, std::string>> columns_of_bytes(const TableFile& table) {
  std::vector<std::pair<std::size_t, std::string>> found;
  for (std::size_t leaf = 0; leaf < table.first_partition(); ++leaf) {
    if (holds_bytes(table.leaves()[leaf])) found.emplace_back(table.own(leaf), table.leaves()[leaf].name);
  }
  return found;
}

// All other columns.
Result<Columns> begin_columns(const TableFile& table) {
  Columns columns;
  columns.rows = table.rows();
  columns.others = table.shadowed();
  for (std::size_t i = 0; i < table.leaves().size(); ++i) {
    const parquet::ParquetLeaf& leaf = table.leaves()[i];
    const bool is_file = holds_bytes(leaf) && !table.is_partition(i);
    if (is_file) continue;
    if (leaf.lists > 0 || !is_integer(leaf.type)) {
      columns.others.push_back(leaf.name);
    } else if (table.is_partition(i)) {
      std::vector<std::string> texts(columns.rows, table.partition(i).text.value_or(""));
      columns.numbers.emplace_back(leaf.name, std::move(texts));
    } else {
      STOKER_ASSIGN_OR_RETURN(texts, table.file().read_texts(table.own(i)));
      columns.numbers.emplace_back(leaf.name, std::move(texts));
    }
  }
  return columns;
}

// One row as a record, so that the same rules apply.
archive::ExampleRecord record_of(const Columns& columns, std::uint64_t row) {
  archive::ExampleRecord record;
  for (const auto& [name, places] : columns.bytes) {
    const ParquetFile::ValueLocation& place = places[row];
    if (place.is_there) record.files.push_back({.name = name, .offset = place.offset, .bytes = place.bytes});
  }
  for (const auto& [name, texts] : columns.numbers) {
    std::int64_t value = 0;
    if (!parse_number(texts[row], &value)) continue;  // missing
    if (name == kLabel) record.label = value;
    if (name != kLabel) record.numbers.push_back({.name = name, .value = value});
  }
  return record;
}

// If a row has a key, columns are files under their own names.
Result<ShardSample> own_sample(archive::ExampleRecord record, const archive::ReadAt& read,
                               const std::string& subject) {
  ShardSample sample;
  sample.label = record.label;
  for (archive::RecordFile& file : record.files) {
    if (file.name != kKey) {
      sample.members.push_back({.name = {},
                                .extension = std::move(file.name),
                                .header_offset = file.offset,
                                .data_offset = file.offset,
                                .bytes = file.bytes});
      continue;
    }
    if (file.bytes > kKeyLimit) return corrupt("{}: a key over 4096 bytes", subject);
    sample.key.resize(file.bytes);
    STOKER_RETURN_IF_ERROR(read(file.offset, std::as_writable_bytes(std::span(sample.key))));
  }
  for (ShardMember& member : sample.members) member.name = format("{}.{}", sample.key, member.extension);
  return sample;
}

Status check_members(const ShardSample& sample, const std::string& subject) {
  for (auto member = sample.members.begin(); member != sample.members.end(); ++member) {
    const auto twin = std::find_if(member + 1, sample.members.end(),
                                   [&](const ShardMember& m) { return m.extension == member->extension; });
    if (twin != sample.members.end()) {
      return invalid("{}: sample '{}' has two files '{}'", subject, printable(sample.key),
                     printable(member->extension));
    }
  }
  return {};
}

Result<ShardScan> samples_of(const Columns& columns, const archive::ReadAt& read, const std::string& subject,
                             const std::string& stem) {
  const bool is_own = std::any_of(columns.bytes.begin(), columns.bytes.end(),
                                  [](const auto& column) { return column.first == kKey; });
  ShardScan scan;
  for (const std::string& name : columns.others) scan.skipped_fields[name] = columns.rows;
  for (std::uint64_t row = 0; row < columns.rows; ++row) {
    archive::ExampleRecord record = record_of(columns, row);
    Result<ShardSample> sample =
        is_own ? own_sample(std::move(record), read, subject)
               : sample_from_example(record, read, format("{}/{:08}", stem, row), scan.skipped_fields);
    if (!sample.ok()) return sample.status();
    if (sample->members.empty()) {
      return invalid("{}: row {}: has no file: all its columns of bytes or text are empty", subject, row)
          .cure("stoker data convert SOURCE OUT --columns NAME,... (numbers and lists become arrays)");
    }
    STOKER_RETURN_IF_ERROR(check_members(*sample, subject));
    scan.samples.push_back(std::move(*sample));
  }
  return scan;
}

// Writes values sequentially.
class Spool {
 public:
  explicit Spool(File& out) : out_(out) {}

  Result<ParquetFile::ValueLocation> add(std::string_view value) {
    constexpr std::size_t kGathered = 1u << 20;
    const ParquetFile::ValueLocation place{.offset = at_, .bytes = value.size(), .is_there = !value.empty()};
    at_ += value.size();
    gathered_ += value;
    if (gathered_.size() >= kGathered) STOKER_RETURN_IF_ERROR(flush());
    return place;
  }
  Status flush() {
    STOKER_RETURN_IF_ERROR(out_.write(gathered_));
    gathered_.clear();
    return {};
  }
  std::uint64_t bytes() const { return at_; }

 private:
  File& out_;
  std::string gathered_;
  std::uint64_t at_ = 0;
};

}  // namespace

Result<ShardScan> scan_parquet(const TableFile& table, const archive::ReadAt& read,
                               const std::string& subject, const std::string& stem) {
  STOKER_ASSIGN_OR_RETURN(columns, begin_columns(table));
  for (auto& [leaf, name] : columns_of_bytes(table)) {
    STOKER_ASSIGN_OR_RETURN(places, table.file().value_locations(leaf));
    columns.bytes.emplace_back(std::move(name), std::move(places));
  }
  return samples_of(columns, read, subject, stem);
}

Result<ShardScan> scan_packed_parquet(const TableFile& table, const codec::ShardFile& shard,
                                      const std::string& subject, const std::string& stem) {
  STOKER_ASSIGN_OR_RETURN(size, shard.size());
  STOKER_ASSIGN_OR_RETURN(columns, begin_columns(table));
  std::vector<codec::ChunkedArray> arrays;
  std::uint64_t begin = 0;
  for (auto& [leaf, name] : columns_of_bytes(table)) {
    STOKER_ASSIGN_OR_RETURN(packed, table.file().packed(leaf));
    for (ParquetFile::ValueLocation& place : packed.value_locations) place.offset += begin;
    begin += packed.pages.shape[0];
    arrays.push_back(std::move(packed.pages));
    columns.bytes.emplace_back(std::move(name), std::move(packed.value_locations));
  }
  STOKER_ASSIGN_OR_RETURN(chunks, codec::ChunkMap::create(std::move(arrays), size, subject));
  const codec::ChunkReader reader(chunks, std::make_shared<codec::ChunkCache>(dataset::kDefaultChunkCache),
                                  subject);
  const archive::ReadAt read = [&](std::uint64_t offset, std::span<std::byte> out) {
    return reader.read(shard, offset, out);
  };
  STOKER_ASSIGN_OR_RETURN(scan, samples_of(columns, read, subject, stem));
  scan.bytes = size;
  scan.end = size;
  scan.chunks = std::make_shared<const codec::ChunkMap>(std::move(chunks));
  return scan;
}

Result<ShardScan> unpack_parquet(const TableFile& table, const std::string& subject, const std::string& stem,
                                 File& out, Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(columns, begin_columns(table));
  Spool spool(out);
  for (auto& [leaf, name] : columns_of_bytes(table)) {
    Places& places = columns.bytes.emplace_back(std::move(name), Places()).second;
    for (std::size_t group = 0; group < table.groups(); ++group) {
      if (progress.stop_requested()) return cancelled("{}: interrupted while unpacking", subject);
      STOKER_ASSIGN_OR_RETURN(values, table.file().read_leaf(group, leaf));
      for (std::size_t i = 0; i < values.texts.size(); ++i) {
        STOKER_ASSIGN_OR_RETURN(place, spool.add(values.texts[i]));
        places.push_back(place);
      }
    }
    if (places.size() != columns.rows)
      return corrupt("{}: its row groups do not have as many rows as it declares", subject);
  }
  STOKER_RETURN_IF_ERROR(spool.flush());
  const archive::ReadAt read = [&out](std::uint64_t offset, std::span<std::byte> into) {
    return out.read_at(offset, into);
  };
  STOKER_ASSIGN_OR_RETURN(scan, samples_of(columns, read, subject, stem));
  scan.bytes = spool.bytes();
  scan.end = spool.bytes();
  return scan;
}

Result<bool> holds_samples(const Path& path) {
  STOKER_ASSIGN_OR_RETURN(opened, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(size, opened.size());
  STOKER_ASSIGN_OR_RETURN(file, ParquetFile::open(
                                    [&opened = opened](std::uint64_t at, std::span<std::byte> out) {
                                      return opened.read_at(at, out);
                                    },
                                    size, printable(path.string())));
  for (std::size_t leaf = 0; leaf < file.leaves().size(); ++leaf) {
    if (file.leaves()[leaf].name == kKey) return true;
    if (file.groups() == 0 || !holds_bytes(file.leaves()[leaf])) continue;
    const auto values = file.read_leaf(0, leaf);
    if (!values.ok() || values->texts.empty())
      continue;  // reading it as samples or as a list reports the
                 // error
    if (image::image_kind(std::as_bytes(std::span(values->texts[0]))).ok()) return true;
  }
  return has_numbers_only(file) && !file.find("path");  // an invalid list is reported when it is read
}

}  // namespace stoker::sources
