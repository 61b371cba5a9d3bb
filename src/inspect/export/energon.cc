#include "inspect/export/energon.h"

#include <bit>

#include "base/encode.h"
#include "base/hash.h"
#include "base/json/json.h"

namespace stoker::inspect {

static_assert(std::endian::native == std::endian::little, "Energon's index is little-endian");

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFolder = ".nv-meta";
constexpr std::string_view kDatabase = "index.sqlite";
constexpr std::string_view kUuid = "index.uuid";
constexpr std::string_view kPendingDatabase = "index.sqlite.part";  // temporary name until finish()

// The simplest YAML: quoted names, one per line.
std::string splits_text(const dataset::Manifest& manifest) {
  std::string text = "exclude: []\nsplit_parts:\n";
  for (const std::string_view wanted : {"train", "val", "test"}) {
    text += format("  {}:", wanted);
    bool has_any = false;
    for (const dataset::SplitInfo& split : manifest.splits) {
      const bool is_match = split.name == wanted || (wanted == "val" && split.name.starts_with("valid")) ||
                            (wanted == "train" && split.name == "all");
      if (!is_match) continue;
      for (const dataset::ShardInfo& shard : split.shards)
        text += format("\n  - {}", json_string(shard.file));
      has_any = has_any || !split.shards.empty();
    }
    text += has_any ? "\n" : " []\n";
  }
  return text;
}

std::string dataset_text(const sources::ShardSample& sample, const dataset::Manifest& manifest) {
  std::string image;
  std::string label;
  for (const dataset::ComponentInfo& c : manifest.schema.components) {
    if (c.is_image && image.empty()) image = c.name;
  }
  for (const sources::ShardMember& member : sample.members) {
    if (member.extension == "cls") label = "cls";
    if (member.extension == "json" && label.empty()) label = "json[label]";
  }
  const std::string head = "__module__: megatron.energon\n";
  if (image.empty() || label.empty()) return head + "__class__: CrudeWebdataset\nsubflavors: {}\n";
  return format("{}__class__: ImageClassificationWebdataset\nfield_map:\n  image: {}\n  label: {}\n", head,
                json_string(image), json_string(label));
}

std::string counts_text(const dataset::Manifest& manifest) {
  Json counts = Json::object();
  for (const dataset::SplitInfo& split : manifest.splits) {
    for (const dataset::ShardInfo& shard : split.shards) counts[shard.file] = shard.samples;
  }
  return json_text(Json{{"shard_counts", counts}}, 1) + "\n";
}

// Identifies an index for Energon: derived from the dataset version, a custom UUID (RFC 9562, version 8).
std::string uuid_of(const dataset::Manifest& manifest) {
  std::string digits = hex(sha256("energon " + manifest.version)).substr(0, 32);
  digits[12] = '8';
  digits[16] = 'a';
  return format("{}-{}-{}-{}-{}", digits.substr(0, 8), digits.substr(8, 4), digits.substr(12, 4),
                digits.substr(16, 4), digits.substr(20));
}

// The schema of `energon prepare`.
constexpr const char* kTables =
    "CREATE TABLE samples (tar_file_id INTEGER, sample_key TEXT, sample_index INTEGER, byte_offset INTEGER, "
    "byte_size INTEGER);"
    "CREATE TABLE sample_parts (tar_file_id INTEGER, sample_index INTEGER, part_name TEXT, "
    "content_byte_offset INTEGER, content_byte_size INTEGER)";
constexpr const char* kKeyIndex = "CREATE INDEX idx_samples_sample_key ON samples(sample_key)";
constexpr const char* kOtherIndexes =
    "CREATE INDEX idx_samples_by_tar_and_idx ON samples(tar_file_id, sample_index);"
    "CREATE INDEX idx_sample_parts_seq ON sample_parts(tar_file_id, sample_index, content_byte_offset);"
    "CREATE INDEX idx_sample_parts_full ON sample_parts(tar_file_id, sample_index, part_name, "
    "content_byte_offset, content_byte_size)";
constexpr const char* kDuplicateKey =
    "SELECT sample_key FROM samples GROUP BY sample_key HAVING count(*) > 1 ORDER BY sample_key LIMIT 1";

std::int64_t number(std::uint64_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

std::string energon_shard_index(const sources::ShardScan& scan) {
  std::string bytes;
  const auto put = [&](std::uint64_t offset) {
    bytes.append(reinterpret_cast<const char*>(&offset), sizeof offset);
  };
  for (const sources::ShardSample& sample : scan.samples) put(sample.members.front().header_offset);
  put(scan.end);
  return bytes;
}

Result<EnergonFolder> EnergonFolder::create(const Path& dataset) {
  const Path folder = dataset / kFolder;
  STOKER_RETURN_IF_ERROR(make_directories(folder));
  STOKER_ASSIGN_OR_RETURN(database, SqliteDatabase::create(folder / kPendingDatabase));
  EnergonFolder energon(folder, std::move(database));
  STOKER_RETURN_IF_ERROR(energon.database_->execute(kTables));
  STOKER_ASSIGN_OR_RETURN(sample, energon.database_->prepare("INSERT INTO samples VALUES (?, ?, ?, ?, ?)"));
  STOKER_ASSIGN_OR_RETURN(part,
                          energon.database_->prepare("INSERT INTO sample_parts VALUES (?, ?, ?, ?, ?)"));
  energon.insert_sample_ = sample;
  energon.insert_part_ = part;
  return energon;
}

EnergonFolder::EnergonFolder(Path folder, SqliteDatabase database)
    : folder_(std::move(folder)), database_(std::make_unique<SqliteDatabase>(std::move(database))) {}

EnergonFolder::~EnergonFolder() {
  if (database_) (void)remove_file(folder_ / kPendingDatabase);
}

Status EnergonFolder::add(std::string_view shard, const sources::ShardScan& scan) {
  for (std::size_t i = 0; i < scan.samples.size(); ++i) {
    const sources::ShardSample& sample = scan.samples[i];
    const std::uint64_t end =
        i + 1 < scan.samples.size() ? scan.samples[i + 1].members.front().header_offset : scan.end;
    if (!is_utf8(sample.members.front().name))
      return invalid("{}: sample '{}': its name is not UTF-8 (--export energon)", shard,
                     printable(sample.key));
    STOKER_RETURN_IF_ERROR(add_sample(sample, number(i), end));
  }
  if (first_.members.empty() && !scan.samples.empty()) first_ = scan.samples.front();
  ++shards_;
  return {};
}

Status EnergonFolder::add_sample(const sources::ShardSample& sample, std::int64_t in_shard,
                                 std::uint64_t end) {
  const std::uint64_t begin = sample.members.front().header_offset;
  const SqliteValue row[] = {shards_, std::string_view(sample.key), in_shard, number(begin),
                             number(end - begin)};
  STOKER_RETURN_IF_ERROR(database_->insert(insert_sample_, row));
  for (const sources::ShardMember& member : sample.members) {
    // The name verbatim: extensions are lower case.
    const std::string_view name = std::string_view(member.name).substr(sample.key.size() + 1);
    const SqliteValue part[] = {shards_, in_shard, name, number(member.data_offset), number(member.bytes)};
    STOKER_RETURN_IF_ERROR(database_->insert(insert_part_, part));
  }
  return {};
}

// Returns a note if duplicate keys would make the database ambiguous. It is then removed.
Result<std::string> EnergonFolder::finish_database() {
  STOKER_RETURN_IF_ERROR(database_->execute(kKeyIndex));
  STOKER_ASSIGN_OR_RETURN(duplicate, database_->first_text(kDuplicateKey));
  if (duplicate) {
    for (const std::string_view old : {kDatabase, kUuid}) (void)remove_file(folder_ / old);
    return format("{}/{} was not written: two samples have the key '{}', and it finds samples by key",
                  kFolder, kDatabase, printable(*duplicate));
  }
  STOKER_RETURN_IF_ERROR(database_->execute(kOtherIndexes));
  STOKER_RETURN_IF_ERROR(database_->finish());
  STOKER_RETURN_IF_ERROR(rename_path(folder_ / kPendingDatabase, folder_ / kDatabase));
  database_.reset();
  return std::string();
}

Result<EnergonFolder::Written> EnergonFolder::finish(const dataset::Manifest& manifest) {
  Written written;
  const auto put = [&](std::string_view name, const std::string& text) {
    written.files.push_back(format("{}/{}", kFolder, name));
    return write_file(folder_ / name, text);
  };
  const std::string counts = counts_text(manifest);
  STOKER_RETURN_IF_ERROR(put(".info.json", counts));
  STOKER_RETURN_IF_ERROR(put(".info.yaml", counts));  // JSON is YAML
  STOKER_RETURN_IF_ERROR(put("split.yaml", splits_text(manifest)));
  STOKER_RETURN_IF_ERROR(put("dataset.yaml", dataset_text(first_, manifest)));
  STOKER_ASSIGN_OR_RETURN(note, finish_database());
  written.note = std::move(note);
  if (!written.note.empty()) return written;
  written.files.push_back(format("{}/{}", kFolder, kDatabase));
  STOKER_RETURN_IF_ERROR(put(kUuid, uuid_of(manifest)));
  return written;
}

}  // namespace stoker::inspect
