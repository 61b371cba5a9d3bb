#include "sources/tables/parquet_scan.h"

#include <algorithm>

#include "codec/chunks/chunk_reader.h"
#include "dataset/shard_source.h"
#include "image/decode/decode.h"
#include "sources/foreign_example.h"
#include "sources/tables/filter/predicate.h"
#include "sources/tables/label_names.h"
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
  std::optional<std::size_t> label;  // among `numbers`, the same in all rows
  std::vector<std::string> others;   // lists, and columns with neither bytes nor integers
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
  std::vector<std::string_view> names;
  for (const auto& [name, texts] : columns.numbers) names.push_back(name);
  const auto own = std::ranges::find(names, kLabel);
  if (own == names.end()) columns.label = find_label(names);
  if (own != names.end()) columns.label = static_cast<std::size_t>(own - names.begin());
  return columns;
}

// One row as a record, so that the same rules apply.
archive::ExampleRecord record_of(const Columns& columns, std::uint64_t row) {
  archive::ExampleRecord record;
  for (const auto& [name, places] : columns.bytes) {
    const ParquetFile::ValueLocation& place = places[row];
    if (place.is_there) record.files.push_back({.name = name, .offset = place.offset, .bytes = place.bytes});
  }
  for (std::size_t i = 0; i < columns.numbers.size(); ++i) {
    const auto& [name, texts] = columns.numbers[i];
    std::int64_t value = 0;
    const bool is_label = columns.label == i;
    const bool has_value = parse_number(texts[row], &value);
    if (is_label && has_value) record.label = value;
    // Without a value the row has no label, whatever other columns end in "label".
    if (is_label && !has_value) record.label = -1;
    if (!is_label && has_value) record.numbers.push_back({.name = name, .value = value});
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

// A row without any file.
Status no_file(const Columns& columns, const std::string& subject, std::uint64_t row) {
  if (columns.bytes.empty())
    return invalid("{}: has no column of bytes or text", subject)
        .cure("stoker data convert SOURCE OUT --columns NAME,... (numbers and lists become arrays)");
  return invalid("{}: row {}: has no file: all its columns of bytes or text are null", subject, row)
      .cure("{} leaves such rows out", where_present(columns.bytes[0].first));
}

// The option that selects all files but their names; "" if no column holds names, or nothing else.
std::string row_keys_option(const Columns& columns) {
  std::string kept;
  bool has_names = false;
  for (const auto& [name, places] : columns.bytes) {
    has_names = has_names || is_key_feature(name);
    if (!is_key_feature(name)) kept += (kept.empty() ? "" : ",") + name;
  }
  return has_names && !kept.empty() ? format("--columns {}", shell_quote(kept)) : std::string();
}

// The samples of `rows`, or of all rows. Other rows are not read as samples.
Result<ShardScan> samples_of(const Columns& columns, const SelectedRows& rows, const archive::ReadAt& read,
                             const ScanNames& names) {
  const auto& [subject, stem] = names;
  const bool is_own = std::any_of(columns.bytes.begin(), columns.bytes.end(),
                                  [](const auto& column) { return column.first == kKey; });
  ShardScan scan;
  const std::uint64_t count = rows ? rows->size() : columns.rows;
  for (const std::string& name : columns.others)
    if (count > 0) scan.skipped_fields[name] = count;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t row = rows ? (*rows)[i] : i;
    archive::ExampleRecord record = record_of(columns, row);
    Result<ShardSample> sample =
        is_own ? own_sample(std::move(record), read, subject)
               : sample_from_example(record, read, format("{}/{:08}", stem, row), scan.skipped_fields);
    if (!sample.ok()) return sample.status();
    if (sample->members.empty()) return no_file(columns, subject, row);
    STOKER_RETURN_IF_ERROR(check_members(*sample, subject));
    scan.samples.push_back(std::move(*sample));
  }
  if (!is_own) scan.row_keys_option = row_keys_option(columns);
  return scan;
}

// Writes values sequentially.
class Spool {
 public:
  explicit Spool(File& out) : out_(out) {}

  Result<ParquetFile::ValueLocation> add(std::string_view value) {
    constexpr std::size_t kGathered = 1u << 20;
    const ParquetFile::ValueLocation place{.offset = at_, .bytes = value.size(), .is_there = true};
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

// The names of the label's classes.
std::vector<std::string> class_names(const TableFile& table, const Columns& columns) {
  if (!columns.label) return {};
  return class_label_names(table.file().hub_metadata(), columns.numbers[*columns.label].first);
}

}  // namespace

Result<ShardScan> scan_parquet(const TableFile& table, const SelectedRows& rows, const archive::ReadAt& read,
                               const ScanNames& names) {
  STOKER_ASSIGN_OR_RETURN(columns, begin_columns(table));
  for (auto& [leaf, name] : columns_of_bytes(table)) {
    STOKER_ASSIGN_OR_RETURN(places, table.file().value_locations(leaf));
    columns.bytes.emplace_back(std::move(name), std::move(places));
  }
  STOKER_ASSIGN_OR_RETURN(scan, samples_of(columns, rows, read, names));
  scan.class_names = class_names(table, columns);
  return scan;
}

Result<ShardScan> scan_packed_parquet(const TableFile& table, const SelectedRows& rows,
                                      const codec::ShardFile& shard, const ScanNames& names) {
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
  STOKER_ASSIGN_OR_RETURN(chunks, codec::ChunkMap::create(std::move(arrays), size, names.subject));
  const codec::ChunkReader reader(chunks, std::make_shared<codec::ChunkCache>(dataset::kDefaultChunkCache),
                                  names.subject);
  const archive::ReadAt read = [&](std::uint64_t offset, std::span<std::byte> out) {
    return reader.read(shard, offset, out);
  };
  STOKER_ASSIGN_OR_RETURN(scan, samples_of(columns, rows, read, names));
  scan.bytes = size;
  scan.end = size;
  scan.chunks = std::make_shared<const codec::ChunkMap>(std::move(chunks));
  scan.class_names = class_names(table, columns);
  return scan;
}

Result<ShardScan> unpack_parquet(const TableFile& table, const ScanNames& names, File& out,
                                 Progress& progress) {
  const std::string& subject = names.subject;
  STOKER_ASSIGN_OR_RETURN(columns, begin_columns(table));
  Spool spool(out);
  for (auto& [leaf, name] : columns_of_bytes(table)) {
    Places& places = columns.bytes.emplace_back(std::move(name), Places()).second;
    for (std::size_t group = 0; group < table.groups(); ++group) {
      if (progress.stop_requested()) return cancelled("{}: interrupted while unpacking", subject);
      STOKER_ASSIGN_OR_RETURN(values, table.file().read_leaf(group, leaf));
      for (std::size_t i = 0; i < values.texts.size(); ++i) {
        Places::value_type& place = places.emplace_back();
        if (!values.is_present(i)) continue;  // an empty value is an empty file
        STOKER_ASSIGN_OR_RETURN(stored, spool.add(values.texts[i]));
        place = stored;
      }
    }
    if (places.size() != columns.rows)
      return corrupt("{}: its row groups do not have as many rows as it declares", subject);
  }
  STOKER_RETURN_IF_ERROR(spool.flush());
  const archive::ReadAt read = [&out](std::uint64_t offset, std::span<std::byte> into) {
    return out.read_at(offset, into);
  };
  STOKER_ASSIGN_OR_RETURN(scan, samples_of(columns, std::nullopt, read, names));
  scan.bytes = spool.bytes();
  scan.end = spool.bytes();
  scan.class_names = class_names(table, columns);
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
    if (!values.ok()) continue;  // reading it as samples or as a list reports the error
    std::size_t row = 0;         // the first value decides
    while (row < values->texts.size() && values->texts[row].empty()) ++row;
    if (row == values->texts.size()) continue;
    if (image::image_kind(std::as_bytes(std::span(values->texts[row]))).ok()) return true;
  }
  return has_numbers_only(file) && !file.find("path");  // an invalid list is reported when it is read
}

}  // namespace stoker::sources
