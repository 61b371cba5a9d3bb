#include "data/look/parquet_scan.h"

#include <algorithm>

#include "data/decode/decode.h"
#include "data/look/foreign_example.h"
#include "data/look/tables/table_scan.h"
#include "format/chunked/chunk_reader.h"
#include "format/shard_source.h"

namespace stoker::data {

namespace {

using formats::ParquetFile;
using Places = std::vector<ParquetFile::Place>;

constexpr std::string_view kKey = "__key__";
constexpr std::string_view kLabel = "cls";
constexpr std::uint64_t kKeyLimit = 4096;

// The columns of one file: where bytes lie, and numbers in digits.
struct Columns {
  std::vector<std::pair<std::string, Places>> bytes;
  std::vector<std::pair<std::string, std::vector<std::string>>> numbers;
  std::vector<std::string> others;  // lists, and columns of what is neither bytes nor whole numbers
  std::uint64_t rows = 0;
};

bool holds_bytes(const formats::ParquetLeaf& leaf) {
  return leaf.type == formats::ParquetLeaf::Type::bytes && leaf.lists == 0;
}

// The numbers of the file's own columns whose values are files, and their names.
std::vector<std::pair<std::size_t, std::string>> columns_of_bytes(const TableFile& table) {
  std::vector<std::pair<std::size_t, std::string>> found;
  for (std::size_t leaf = 0; leaf < table.first_of_path(); ++leaf) {
    if (holds_bytes(table.leaves()[leaf])) found.emplace_back(table.own(leaf), table.leaves()[leaf].name);
  }
  return found;
}

// All but those.
Result<Columns> begin_columns(const TableFile& table) {
  Columns columns;
  columns.rows = table.rows();
  columns.others = table.covered();
  for (std::size_t i = 0; i < table.leaves().size(); ++i) {
    const formats::ParquetLeaf& leaf = table.leaves()[i];
    const bool is_file = holds_bytes(leaf) && !table.is_of_path(i);
    if (is_file) continue;
    if (leaf.lists > 0 || !is_integer(leaf.type)) {
      columns.others.push_back(leaf.name);
    } else if (table.is_of_path(i)) {
      std::vector<std::string> texts(columns.rows, table.of_path(i).text.value_or(""));
      columns.numbers.emplace_back(leaf.name, std::move(texts));
    } else {
      OK_OR_RETURN(texts, table.file().read_texts(table.own(i)));
      columns.numbers.emplace_back(leaf.name, std::move(texts));
    }
  }
  return columns;
}

// One row as a record: the rules that make a sample of it are the same.
formats::ExampleRecord record_of(const Columns& columns, std::uint64_t row) {
  formats::ExampleRecord record;
  for (const auto& [name, places] : columns.bytes) {
    const ParquetFile::Place& place = places[row];
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

// Of a row that has a key the columns are the sample's files under their own names.
Result<ShardSample> own_sample(formats::ExampleRecord record, const formats::ReadAt& read,
                               const std::string& subject) {
  ShardSample sample;
  sample.label = record.label;
  for (formats::RecordFile& file : record.files) {
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
    RETURN_IF_ERROR(read(file.offset, std::as_writable_bytes(std::span(sample.key))));
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

Result<ShardScan> samples_of(const Columns& columns, const formats::ReadAt& read, const std::string& subject,
                             const std::string& stem) {
  const bool is_own = std::any_of(columns.bytes.begin(), columns.bytes.end(),
                                  [](const auto& column) { return column.first == kKey; });
  ShardScan scan;
  for (const std::string& name : columns.others) scan.not_taken[name] = columns.rows;
  for (std::uint64_t row = 0; row < columns.rows; ++row) {
    formats::ExampleRecord record = record_of(columns, row);
    Result<ShardSample> sample =
        is_own ? own_sample(std::move(record), read, subject)
               : sample_of_example(record, read, format("{}/{:08}", stem, row), scan.not_taken);
    if (!sample.ok()) return sample.status();
    if (sample->members.empty()) {
      return invalid("{}: row {}: has no file: no column of bytes or text has anything", subject, row)
          .cure("stoker data convert SOURCE OUT --columns NAME,..., which makes arrays of numbers and lists");
    }
    RETURN_IF_ERROR(check_members(*sample, subject));
    scan.samples.push_back(std::move(*sample));
  }
  return scan;
}

// Writes values one behind the other.
class Spool {
 public:
  explicit Spool(File& out) : out_(out) {}

  Result<ParquetFile::Place> add(std::string_view value) {
    constexpr std::size_t kGathered = 1u << 20;
    const ParquetFile::Place place{.offset = at_, .bytes = value.size(), .is_there = !value.empty()};
    at_ += value.size();
    gathered_ += value;
    if (gathered_.size() >= kGathered) RETURN_IF_ERROR(flush());
    return place;
  }
  Status flush() {
    RETURN_IF_ERROR(out_.write(gathered_));
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

Result<ShardScan> scan_parquet(const TableFile& table, const formats::ReadAt& read,
                               const std::string& subject, const std::string& stem) {
  OK_OR_RETURN(columns, begin_columns(table));
  for (auto& [leaf, name] : columns_of_bytes(table)) {
    OK_OR_RETURN(places, table.file().places(leaf));
    columns.bytes.emplace_back(std::move(name), std::move(places));
  }
  return samples_of(columns, read, subject, stem);
}

Result<ShardScan> scan_packed_parquet(const TableFile& table, const formats::ShardFile& shard,
                                      const std::string& subject, const std::string& stem) {
  OK_OR_RETURN(size, shard.size());
  OK_OR_RETURN(columns, begin_columns(table));
  std::vector<formats::ChunkedArray> arrays;
  std::uint64_t begin = 0;
  for (auto& [leaf, name] : columns_of_bytes(table)) {
    OK_OR_RETURN(packed, table.file().packed(leaf));
    for (ParquetFile::Place& place : packed.places) place.offset += begin;
    begin += packed.pages.shape[0];
    arrays.push_back(std::move(packed.pages));
    columns.bytes.emplace_back(std::move(name), std::move(packed.places));
  }
  OK_OR_RETURN(chunks, formats::ChunkMap::create(std::move(arrays), size, subject));
  const formats::ChunkReader reader(chunks, std::make_shared<formats::ChunkCache>(formats::kKeptChunks),
                                    subject);
  const formats::ReadAt read = [&](std::uint64_t offset, std::span<std::byte> out) {
    return reader.read(shard, offset, out);
  };
  OK_OR_RETURN(scan, samples_of(columns, read, subject, stem));
  scan.bytes = size;
  scan.end = size;
  scan.chunks = std::make_shared<const formats::ChunkMap>(std::move(chunks));
  return scan;
}

Result<ShardScan> unpack_parquet(const TableFile& table, const std::string& subject, const std::string& stem,
                                 File& out, Progress& progress) {
  OK_OR_RETURN(columns, begin_columns(table));
  Spool spool(out);
  for (auto& [leaf, name] : columns_of_bytes(table)) {
    Places& places = columns.bytes.emplace_back(std::move(name), Places()).second;
    for (std::size_t group = 0; group < table.groups(); ++group) {
      if (progress.stop_requested()) return cancelled("{}: interrupted while it was unpacked", subject);
      OK_OR_RETURN(values, table.file().read_leaf(group, leaf));
      for (std::size_t i = 0; i < values.texts.size(); ++i) {
        OK_OR_RETURN(place, spool.add(values.texts[i]));
        places.push_back(place);
      }
    }
    if (places.size() != columns.rows) return corrupt("{}: its row groups do not add up", subject);
  }
  RETURN_IF_ERROR(spool.flush());
  const formats::ReadAt read = [&out](std::uint64_t offset, std::span<std::byte> into) {
    return out.read_at(offset, into);
  };
  OK_OR_RETURN(scan, samples_of(columns, read, subject, stem));
  scan.bytes = spool.bytes();
  scan.end = spool.bytes();
  return scan;
}

Result<bool> holds_samples(const Path& path) {
  OK_OR_RETURN(opened, File::open_read(path));
  OK_OR_RETURN(size, opened.size());
  OK_OR_RETURN(file, ParquetFile::open(
                         [&opened = opened](std::uint64_t at, std::span<std::byte> out) {
                           return opened.read_at(at, out);
                         },
                         size, printable(path.string())));
  for (std::size_t leaf = 0; leaf < file.leaves().size(); ++leaf) {
    if (file.leaves()[leaf].name == kKey) return true;
    if (file.groups() == 0 || !holds_bytes(file.leaves()[leaf])) continue;
    const auto values = file.read_leaf(0, leaf);
    if (!values.ok() || values->texts.empty()) continue;  // reading it as samples or as a list says why
    if (image_kind(std::as_bytes(std::span(values->texts[0]))).ok()) return true;
  }
  return has_numbers_only(file) && !file.find("path");  // what is wrong with a list is said where it is read
}

}  // namespace stoker::data
