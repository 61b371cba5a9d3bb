#include "data/look/energon.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/encode.h"
#include "base/hash.h"
#include "base/json/json.h"

namespace stoker::data {

static_assert(std::endian::native == std::endian::little, "Energon's index is little-endian");

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFolder = ".nv-meta";
constexpr std::string_view kDatabase = "index.sqlite";
constexpr std::string_view kUuid = "index.uuid";
constexpr std::string_view kPendingDatabase = "index.sqlite.part";  // until it is whole

// YAML in its plainest form: quoted names, one a line.
std::string splits_text(const formats::Manifest& manifest) {
  std::string text = "exclude: []\nsplit_parts:\n";
  for (const std::string_view wanted : {"train", "val", "test"}) {
    text += format("  {}:", wanted);
    bool has_any = false;
    for (const formats::SplitInfo& split : manifest.splits) {
      const bool is_it = split.name == wanted || (wanted == "val" && split.name.starts_with("valid")) ||
                         (wanted == "train" && split.name == "all");
      if (!is_it) continue;
      for (const formats::ShardInfo& shard : split.shards)
        text += format("\n  - {}", json_string(shard.file));
      has_any = has_any || !split.shards.empty();
    }
    text += has_any ? "\n" : " []\n";
  }
  return text;
}

std::string dataset_text(const ShardSample& sample, const formats::Manifest& manifest) {
  std::string image;
  std::string label;
  for (const formats::ComponentInfo& c : manifest.schema.components) {
    if (c.is_image && image.empty()) image = c.name;
  }
  for (const ShardMember& member : sample.members) {
    if (member.extension == "cls") label = "cls";
    if (member.extension == "json" && label.empty()) label = "json[label]";
  }
  const std::string head = "__module__: megatron.energon\n";
  if (image.empty() || label.empty()) return head + "__class__: CrudeWebdataset\nsubflavors: {}\n";
  return format("{}__class__: ImageClassificationWebdataset\nfield_map:\n  image: {}\n  label: {}\n", head,
                json_string(image), json_string(label));
}

std::string counts_text(const formats::Manifest& manifest) {
  Json counts = Json::object();
  for (const formats::SplitInfo& split : manifest.splits) {
    for (const formats::ShardInfo& shard : split.shards) counts[shard.file] = shard.samples;
  }
  return json_text(Json{{"shard_counts", counts}}, 1) + "\n";
}

// By which Energon tells one index from another: made of the dataset's version, as RFC 9562 has UUIDs of
// one's own making (version 8).
std::string uuid_of(const formats::Manifest& manifest) {
  std::string digits = hex(sha256("energon " + manifest.version)).substr(0, 32);
  digits[12] = '8';
  digits[16] = 'a';
  return format("{}-{}-{}-{}-{}", digits.substr(0, 8), digits.substr(8, 4), digits.substr(12, 4),
                digits.substr(16, 4), digits.substr(20));
}

constexpr std::string_view kSamplesSql =
    "CREATE TABLE samples (tar_file_id INTEGER, sample_key TEXT, sample_index INTEGER, byte_offset INTEGER, "
    "byte_size INTEGER)";
constexpr std::string_view kPartsSql =
    "CREATE TABLE sample_parts (tar_file_id INTEGER, sample_index INTEGER, part_name TEXT, "
    "content_byte_offset INTEGER, content_byte_size INTEGER)";

formats::SqliteName index_name(std::string_view name, std::string_view table, std::string_view columns) {
  return {.name = std::string(name),
          .table = std::string(table),
          .sql = format("CREATE INDEX {} ON {}({})", name, table, columns)};
}

std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

std::string energon_shard_index(const ShardScan& scan) {
  std::string bytes;
  const auto put = [&](std::uint64_t offset) {
    bytes.append(reinterpret_cast<const char*>(&offset), sizeof offset);
  };
  for (const ShardSample& sample : scan.samples) put(sample.members.front().header_offset);
  put(scan.end);
  return bytes;
}

Result<EnergonFolder> EnergonFolder::create(const Path& dataset) {
  const Path folder = dataset / kFolder;
  RETURN_IF_ERROR(make_directories(folder));
  OK_OR_RETURN(database, formats::SqliteWriter::create(folder / kPendingDatabase));
  return EnergonFolder(folder, std::move(database));
}

EnergonFolder::EnergonFolder(Path folder, formats::SqliteWriter database)
    : folder_(std::move(folder)), database_(std::make_unique<formats::SqliteWriter>(std::move(database))) {
  samples_ = database_->add_table({"samples", "samples", std::string(kSamplesSql)});
  parts_ = database_->add_table({"sample_parts", "sample_parts", std::string(kPartsSql)});
  keys_index_ = database_->add_index(index_name("idx_samples_sample_key", "samples", "sample_key"));
  samples_index_ =
      database_->add_index(index_name("idx_samples_by_tar_and_idx", "samples", "tar_file_id, sample_index"));
  parts_index_ = database_->add_index(
      index_name("idx_sample_parts_seq", "sample_parts", "tar_file_id, sample_index, content_byte_offset"));
  full_index_ = database_->add_index(
      index_name("idx_sample_parts_full", "sample_parts",
                 "tar_file_id, sample_index, part_name, content_byte_offset, content_byte_size"));
}

EnergonFolder::~EnergonFolder() {
  if (database_) (void)remove_file(folder_ / kPendingDatabase);
}

Status EnergonFolder::add(std::string_view shard, const ShardScan& scan) {
  for (std::size_t i = 0; i < scan.samples.size(); ++i) {
    const ShardSample& sample = scan.samples[i];
    const std::uint64_t end =
        i + 1 < scan.samples.size() ? scan.samples[i + 1].members.front().header_offset : scan.end;
    if (!is_utf8(sample.members.front().name))
      return invalid("{}: sample '{}': its name is not UTF-8 (--export energon)", shard,
                     printable(sample.key));
    RETURN_IF_ERROR(add_sample(sample, number(i), end));
  }
  if (first_.members.empty() && !scan.samples.empty()) first_ = scan.samples.front();
  ++shards_;
  return {};
}

Status EnergonFolder::add_sample(const ShardSample& sample, std::int64_t in_shard, std::uint64_t end) {
  const std::uint64_t begin = sample.members.front().header_offset;
  const formats::SqliteValue row[] = {shards_, std::string_view(sample.key), in_shard, number(begin),
                                      number(end - begin)};
  RETURN_IF_ERROR(database_->add_row(samples_, row));
  keys_.emplace_back(sample.key, ++sample_rows_);
  const formats::SqliteValue place[] = {shards_, in_shard};
  RETURN_IF_ERROR(database_->add_entry(samples_index_, place, sample_rows_));
  struct Part {
    std::string_view name;  // as stored: extensions are in lower case
    const ShardMember* member = nullptr;
    std::int64_t row = 0;
  };
  std::vector<Part> parts;
  for (const ShardMember& member : sample.members) {
    Part& part = parts.emplace_back();
    part = {.name = std::string_view(member.name).substr(sample.key.size() + 1),
            .member = &member,
            .row = ++part_rows_};
    const formats::SqliteValue values[] = {shards_, in_shard, part.name, number(member.data_offset),
                                           number(member.bytes)};
    RETURN_IF_ERROR(database_->add_row(parts_, values));
    const formats::SqliteValue entry[] = {shards_, in_shard, number(member.data_offset)};
    RETURN_IF_ERROR(database_->add_entry(parts_index_, entry, part.row));
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.name < b.name; });
  for (const Part& part : parts) {
    const formats::SqliteValue entry[] = {shards_, in_shard, part.name, number(part.member->data_offset),
                                          number(part.member->bytes)};
    RETURN_IF_ERROR(database_->add_entry(full_index_, entry, part.row));
  }
  return {};
}

// A sentence where the database would answer wrongly, and is not kept.
Result<std::string> EnergonFolder::finish_database() {
  std::sort(keys_.begin(), keys_.end());
  const auto twin = std::adjacent_find(keys_.begin(), keys_.end(),
                                       [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twin != keys_.end()) {
    for (const std::string_view old : {kDatabase, kUuid}) (void)remove_file(folder_ / old);
    return format("{}/{} is not written: two samples have the key '{}', and it is for finding samples by key",
                  kFolder, kDatabase, printable(twin->first));
  }
  for (const auto& [key, row] : keys_) {
    const formats::SqliteValue entry[] = {std::string_view(key)};
    RETURN_IF_ERROR(database_->add_entry(keys_index_, entry, row));
  }
  RETURN_IF_ERROR(database_->finish());
  RETURN_IF_ERROR(rename_path(folder_ / kPendingDatabase, folder_ / kDatabase));
  database_.reset();
  return std::string();
}

Result<EnergonFolder::Written> EnergonFolder::finish(const formats::Manifest& manifest) {
  Written written;
  const auto put = [&](std::string_view name, const std::string& text) {
    written.files.push_back(format("{}/{}", kFolder, name));
    return write_file(folder_ / name, text);
  };
  const std::string counts = counts_text(manifest);
  RETURN_IF_ERROR(put(".info.json", counts));
  RETURN_IF_ERROR(put(".info.yaml", counts));  // JSON is YAML
  RETURN_IF_ERROR(put("split.yaml", splits_text(manifest)));
  RETURN_IF_ERROR(put("dataset.yaml", dataset_text(first_, manifest)));
  OK_OR_RETURN(note, finish_database());
  written.note = std::move(note);
  if (!written.note.empty()) return written;
  written.files.push_back(format("{}/{}", kFolder, kDatabase));
  RETURN_IF_ERROR(put(kUuid, uuid_of(manifest)));
  return written;
}

}  // namespace stoker::data
