#include "dataset/manifest.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/encode.h"
#include "base/file.h"
#include "base/json/json.h"
#include "base/language/counted.h"

namespace stoker::dataset {

namespace {

constexpr ByteCount kManifestLimit = 1_GiB;

// Strings with their length before them, so that no content can pass for another.
std::string length_prefixed(std::string_view text) { return format("{}:{}", text.size(), text); }

}  // namespace

Digest shard_hash(std::span<const Digest> blocks) { return sha256(std::as_bytes(blocks)); }

void ImageStatistics::add(const ImageStatistics& other) {
  if (other.images == 0) return;
  const bool first = images == 0;
  width_min = first ? other.width_min : std::min(width_min, other.width_min);
  height_min = first ? other.height_min : std::min(height_min, other.height_min);
  width_max = std::max(width_max, other.width_max);
  height_max = std::max(height_max, other.height_max);
  images += other.images;
  progressive += other.progressive;
  grayscale += other.grayscale;
  cmyk += other.cmyk;
  alpha += other.alpha;
  misnamed += other.misnamed;
  reencoded += other.reencoded;
  pixels += other.pixels;
  channels.add(other.channels);
}

void ChannelSums::add(const ChannelSums& other) {
  pixels += other.pixels;
  for (std::size_t c = 0; c < sum.size(); ++c) {
    sum[c] += other.sum[c];
    square_sum[c] += other.square_sum[c];
  }
}

double ChannelSums::mean(std::size_t c) const {
  return static_cast<double>(sum[c]) / static_cast<double>(pixels) / 255;
}

double ChannelSums::deviation(std::size_t c) const {
  const double square = static_cast<double>(square_sum[c]) / static_cast<double>(pixels) / (255.0 * 255.0);
  return std::sqrt(std::max(0.0, square - mean(c) * mean(c)));
}

std::uint64_t Manifest::samples() const {
  std::uint64_t sum = 0;
  for (const SplitInfo& split : splits) sum += split.samples;
  return sum;
}

std::uint64_t Manifest::bytes() const {
  std::uint64_t sum = 0;
  for (const SplitInfo& split : splits) {
    for (const ShardInfo& shard : split.shards) sum += shard.bytes;
  }
  return sum;
}

std::uint64_t Manifest::shard_count() const {
  std::uint64_t sum = 0;
  for (const SplitInfo& split : splits) sum += split.shards.size();
  return sum;
}

Result<const SplitInfo*> Manifest::split(std::string_view name) const {
  if (name.empty() && splits.size() == 1) return &splits[0];
  std::vector<std::string_view> names;
  for (const SplitInfo& candidate : splits) {
    if (candidate.name == name) return &candidate;
    names.push_back(candidate.name);
  }
  if (name.empty()) {
    std::string list;
    for (std::string_view n : names) list += format("{}{}", list.empty() ? "" : ", ", n);
    return invalid("dataset {}: has {} splits, name one (one of: {})", short_version(), splits.size(), list);
  }
  return not_found("dataset {}: no split '{}'{}", short_version(), printable(name), suggestion(name, names));
}

std::string_view to_text(BlockHash hash) { return hash == BlockHash::sha256 ? "sha256" : "crc32c"; }

void BlockHasher::update(std::span<const std::byte> bytes) {
  if (hash_ == BlockHash::sha256) {
    sha256_.update(bytes);
  } else {
    crc_ = crc32c(bytes, crc_);
  }
}

void BlockHasher::update(std::span<const std::byte> bytes, std::uint32_t crc32c) {
  if (hash_ == BlockHash::sha256) {
    sha256_.update(bytes);
  } else {
    crc_ = crc32c_combine(crc_, crc32c, bytes.size());
  }
}

Digest BlockHasher::finish() {
  if (hash_ == BlockHash::sha256) return sha256_.finish();
  Digest digest{};
  for (std::size_t i = 0; i < sizeof crc_; ++i) digest[i] = static_cast<std::byte>(crc_ >> (24 - 8 * i));
  crc_ = 0;
  return digest;
}

Digest block_digest(BlockHash hash, std::span<const std::byte> block) {
  BlockHasher hasher(hash);
  hasher.update(block);
  return hasher.finish();
}

bool stores_labels_in_index(const DatasetSchema& schema) {
  return schema.has_labels && schema.container == "tar";
}

std::string dataset_version(const Manifest& manifest) {
  const DatasetSchema& schema = manifest.schema;
  std::string text = "stoker-dataset-1\n";
  text += format("container {}\n", length_prefixed(schema.container));
  text += format("components {}\n", schema.components.size());
  for (const ComponentInfo& component : schema.components) {
    text += format("{} {}\n", length_prefixed(component.name), component.is_image ? "image" : "bytes");
  }
  text += format("labels {}\n", schema.has_labels ? "int64" : "none");
  text += format("classes {}\n", schema.classes.size());
  for (const std::string& name : schema.classes) text += length_prefixed(name) + "\n";
  if (schema.block_hash != BlockHash::sha256) text += format("blocks {}\n", to_text(schema.block_hash));
  if (manifest.content) text += format("content {}\n", hex(*manifest.content));
  text += format("splits {}\n", manifest.splits.size());
  for (const SplitInfo& split : manifest.splits) {
    text += format("{} {}\n", length_prefixed(split.name), split.shards.size());
    for (const ShardInfo& shard : split.shards) text += hex(shard.hash) + "\n";
  }
  return hex(sha256(text));
}

Status check_names(const Manifest& manifest, std::string_view subject) {
  const auto check = [&](std::string_view what, std::string_view name) -> Status {
    if (is_utf8(name)) return {};
    return invalid("{}: the name of the {} '{}' is not UTF-8", subject, what, printable(name));
  };
  for (const std::string& name : manifest.schema.classes) STOKER_RETURN_IF_ERROR(check("class", name));
  for (const ComponentInfo& component : manifest.schema.components)
    STOKER_RETURN_IF_ERROR(check("component", component.name));
  for (const SplitInfo& split : manifest.splits) {
    STOKER_RETURN_IF_ERROR(check("split", split.name));
    for (const ShardInfo& shard : split.shards) STOKER_RETURN_IF_ERROR(check("shard", shard.file));
  }
  return {};
}

namespace {

// Checks the file names; false for an unreadable folder.
bool holds_shards(const Path& folder) {
  const Result<std::vector<std::string>> names = list_directory(folder);
  return names.ok() && std::ranges::any_of(*names, [](std::string_view name) {
           constexpr std::string_view kEndings[] = {".tar",  ".tfrecord", ".parquet", ".h5",  ".hdf5",
                                                    ".zarr", ".zarr.zip", ".mds",     ".npy", ".npz"};
           return std::ranges::any_of(kEndings,
                                      [&](std::string_view ending) { return name.ends_with(ending); });
         });
}

}  // namespace

Result<Manifest> read_manifest(const Path& dataset) {
  const std::string name = printable(dataset.string());
  const Path file = dataset / kManifestFile;
  if (!folder_exists(dataset)) {
    if (!path_exists(dataset)) return not_found("{}: no such dataset", name);
    return invalid("{}: is not a folder (a dataset is a folder with manifest.json)", name)
        .cure("stoker data info {}", shell_quote(dataset.string()));
  }
  if (!path_exists(file)) {
    if (path_exists(dataset / kPendingFolder)) {
      return not_found("{}: is not finished: packing it was interrupted", name)
          .cure("run the same `stoker data pack` command again to resume it");
    }
    const std::string_view maker = holds_shards(dataset) ? "index" : "pack FOLDER";
    return not_found("{}: is not a dataset: it has no manifest.json", name)
        .cure("stoker data {} {}", maker, shell_quote(dataset.string()));
  }
  STOKER_ASSIGN_OR_RETURN(text, read_file(file, kManifestLimit));
  return parse_manifest(text, printable(file.string()));
}

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFormat = "stoker-dataset";
constexpr std::uint64_t kFormatVersion = 1;
// Incompatible features.
constexpr std::string_view kBlocksByCrc = "blocks-crc32c";
constexpr std::string_view kIndexContent = "index-content";

Json shard_json(const ShardInfo& shard) {
  Json blocks = Json::array();
  for (const Digest& block : shard.blocks) blocks.push_back(hex(block));
  return {{"file", shard.file},
          {"bytes", shard.bytes},
          {"samples", shard.samples},
          {"sha256", hex(shard.hash)},
          {"blocks", std::move(blocks)}};
}

Json split_json(const SplitInfo& split) {
  Json shards = Json::array();
  for (const ShardInfo& shard : split.shards) shards.push_back(shard_json(shard));
  return {{"name", split.name},
          {"samples", split.samples},
          {"class_samples", split.class_samples},
          {"shards", std::move(shards)}};
}

Json schema_json(const DatasetSchema& schema) {
  Json components = Json::array();
  for (const ComponentInfo& component : schema.components) {
    components.push_back({{"name", component.name}, {"kind", component.is_image ? "image" : "bytes"}});
  }
  return {{"container", schema.container},
          {"components", std::move(components)},
          {"labels", schema.has_labels ? Json("int64") : Json(nullptr)},
          {"classes", schema.classes}};
}

Json features_json(const Manifest& manifest) {
  Json features = Json::array();
  if (manifest.schema.block_hash == BlockHash::crc32c) features.push_back(kBlocksByCrc);
  if (manifest.content) features.push_back(kIndexContent);
  return features;
}

Json index_json(const Manifest& manifest) {
  Json json = {{"file", kIndexFile}, {"bytes", manifest.index_bytes}, {"sha256", hex(manifest.index_hash)}};
  if (manifest.index_table) json["table"] = hex(*manifest.index_table);
  if (manifest.content) json["content"] = hex(*manifest.content);
  return json;
}

Json statistics_json(const ImageStatistics& images) {
  Json json = {{"images", images.images},         {"progressive", images.progressive},
               {"grayscale", images.grayscale},   {"cmyk", images.cmyk},
               {"alpha", images.alpha},           {"misnamed", images.misnamed},
               {"width_min", images.width_min},   {"width_max", images.width_max},
               {"height_min", images.height_min}, {"height_max", images.height_max},
               {"pixels", images.pixels},         {"encoded_anew", images.reencoded}};
  const ChannelSums& channels = images.channels;
  if (channels.pixels > 0) {
    json["channels"] = {
        {"pixels", channels.pixels}, {"sum", channels.sum}, {"square_sum", channels.square_sum}};
  }
  return json;
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  Json splits = Json::array();
  for (const SplitInfo& split : manifest.splits) splits.push_back(split_json(split));
  Json document = {
      {"format", kFormat},
      {"format_version", kFormatVersion},
      {"incompatible_features", features_json(manifest)},
      {"version", manifest.version},
      {"schema", schema_json(manifest.schema)},
      {"splits", std::move(splits)},
      {"index", index_json(manifest)},
      {"statistics", {{"images", statistics_json(manifest.images)}, {"left_out", manifest.left_out}}}};
  if (const std::optional<SourceVersion>& source = manifest.source) {
    document["source"] = {
        {"dvc", source->file}, {"md5", source->md5}, {"bytes", source->bytes}, {"files", source->files}};
  }
  return json_text(document, 1) + "\n";
}

namespace {

// Takes fields out of a JSON document and remembers the first thing that is wrong, with its place. After that
// it answers with empty values: callers check once, at the end.
class ManifestFields {
 public:
  explicit ManifestFields(std::string_view subject) : subject_(subject) {}

  void fail(std::string_view place, std::string_view what) {
    if (status_.ok()) status_ = corrupt("{}: {}: {}", subject_, place, what);
  }
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  const Status& status() const { return status_; }

  const Json& at(const Json& object, std::string_view place, std::string_view key) {
    static const Json kMissing;
    if (!object.is_object()) {
      fail(place, "is not an object");
      return kMissing;
    }
    const auto found = object.find(key);
    if (found == object.end()) {
      fail(join(place, key), "is missing");
      return kMissing;
    }
    return *found;
  }
  std::uint64_t number(const Json& object, std::string_view place, std::string_view key) {
    const Json& value = at(object, place, key);
    if (!value.is_number_unsigned()) {
      fail(join(place, key), "is not a natural number");
      return 0;
    }
    return value.get<std::uint64_t>();
  }
  std::string text(const Json& object, std::string_view place, std::string_view key) {
    const Json& value = at(object, place, key);
    if (!value.is_string()) {
      fail(join(place, key), "is not text");
      return {};
    }
    return value.get<std::string>();
  }
  Digest digest(const Json& object, std::string_view place, std::string_view key) {
    return to_digest(at(object, place, key), join(place, key));
  }
  Digest to_digest(const Json& value, std::string_view place) {
    if (!value.is_string()) {
      fail(place, "is not a SHA-256 in hexadecimal");
      return {};
    }
    Result<Digest> digest = parse_digest(value.get_ref<const std::string&>());
    if (!digest.ok()) fail(place, "is not a SHA-256 in hexadecimal");
    return digest.ok() ? *digest : Digest{};
  }
  /// Calls `each` with every element and its place.
  template <typename Each>
  void list(const Json& object, std::string_view place, std::string_view key, const Each& each) {
    const Json& value = at(object, place, key);
    if (!value.is_array()) return fail(join(place, key), "is not a list");
    std::size_t i = 0;
    for (const Json& element : value) each(element, format("{}[{}]", join(place, key), i++));
  }
  static std::string join(std::string_view place, std::string_view key) {
    return place.empty() ? std::string(key) : format("{}.{}", place, key);
  }

 private:
  std::string subject_;
  Status status_;
};

bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         name.find('/') == std::string_view::npos && printable(name) == name;
}

// Of a table in folders its path below the dataset.
bool is_shard_name(std::string_view name) {
  constexpr std::size_t kLongest = 4096;
  const std::vector<std::string_view> parts = split(name, '/');
  return name.size() <= kLongest && std::all_of(parts.begin(), parts.end(), is_file_name);
}

ShardInfo read_shard(ManifestFields& fields, const Json& json, const std::string& place) {
  ShardInfo shard;
  shard.file = fields.text(json, place, "file");
  shard.bytes = fields.number(json, place, "bytes");
  shard.samples = fields.number(json, place, "samples");
  shard.hash = fields.digest(json, place, "sha256");
  fields.list(json, place, "blocks", [&](const Json& block, const std::string& at) {
    shard.blocks.push_back(fields.to_digest(block, at));
  });
  if (!fields.status().ok()) return shard;
  if (!is_shard_name(shard.file)) fields.fail(place + ".file", "is not a file name");
  const std::uint64_t blocks = shard.bytes / kHashBlock + (shard.bytes % kHashBlock != 0 ? 1 : 0);
  if (shard.blocks.size() != blocks) {
    fields.fail(place + ".blocks",
                format("has {} hashes, {} bytes need {}", shard.blocks.size(), shard.bytes, blocks));
  }
  if (shard.hash != shard_hash(shard.blocks)) fields.fail(place + ".sha256", "is not the hash of its blocks");
  return shard;
}

SplitInfo read_split(ManifestFields& fields, const Json& json, const std::string& place) {
  SplitInfo split;
  split.name = fields.text(json, place, "name");
  split.samples = fields.number(json, place, "samples");
  fields.list(json, place, "class_samples", [&](const Json& count, const std::string& at) {
    if (!count.is_number_unsigned()) return fields.fail(at, "is not a natural number");
    split.class_samples.push_back(count.get<std::uint64_t>());
  });
  std::uint64_t samples = 0;
  fields.list(json, place, "shards", [&](const Json& shard, const std::string& at) {
    if (!fields.status().ok()) return;
    split.shards.push_back(read_shard(fields, shard, at));
    samples += split.shards.back().samples;
  });
  if (!is_file_name(split.name)) fields.fail(place + ".name", "is not a name");
  if (samples != split.samples) {
    fields.fail(place + ".samples", format("is {}, its shards have {}", split.samples, samples));
  }
  return split;
}

DatasetSchema read_schema(ManifestFields& fields, const Json& json) {
  DatasetSchema schema;
  schema.container = fields.text(json, "schema", "container");
  fields.list(json, "schema", "components", [&](const Json& component, const std::string& at) {
    const std::string kind = fields.text(component, at, "kind");
    schema.components.push_back({.name = fields.text(component, at, "name"), .is_image = kind == "image"});
    if (kind != "image" && kind != "bytes") fields.fail(at + ".kind", "is neither 'image' nor 'bytes'");
  });
  const Json& labels = fields.at(json, "schema", "labels");
  schema.has_labels = labels.is_string();
  if (!labels.is_null() && labels != "int64") fields.fail("schema.labels", "is neither null nor 'int64'");
  fields.list(json, "schema", "classes", [&](const Json& name, const std::string& at) {
    if (!name.is_string()) return fields.fail(at, "is not text");
    schema.classes.push_back(name.get<std::string>());
  });
  constexpr std::string_view kContainers[] = {"tar", "tfrecord", "parquet", "hdf5", "zarr", "mds", "npy"};
  if (std::find(std::begin(kContainers), std::end(kContainers), schema.container) == std::end(kContainers))
    fields.fail("schema.container",
                "is neither 'tar', 'tfrecord', 'parquet', 'hdf5', 'zarr', 'mds' nor 'npy'");
  return schema;
}

// Statistics that came later may be missing.
std::uint64_t optional_number(ManifestFields& fields, const Json& json, std::string_view place,
                              std::string_view key) {
  return json.is_object() && json.contains(key) ? fields.number(json, place, key) : 0;
}

ChannelSums read_channels(ManifestFields& fields, const Json& images, const std::string& place) {
  ChannelSums sums;
  if (!images.is_object() || !images.contains("channels")) return sums;
  const Json& json = images["channels"];
  sums.pixels = fields.number(json, place, "pixels");
  const auto three = [&](std::string_view key, std::array<std::uint64_t, 3>& into) {
    std::size_t count = 0;
    fields.list(json, place, key, [&](const Json& value, const std::string& at) {
      if (!value.is_number_unsigned()) return fields.fail(at, "is not a natural number");
      if (count < into.size()) into[count] = value.get<std::uint64_t>();
      ++count;
    });
    if (count != into.size()) fields.fail(format("{}.{}", place, key), "does not have three numbers");
  };
  three("sum", sums.sum);
  three("square_sum", sums.square_sum);
  return sums;
}

ImageStatistics read_images(ManifestFields& fields, const Json& json) {
  const std::string place = "statistics.images";
  const auto small = [&](std::string_view key) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(fields.number(json, place, key), 0xFFFFFFFF));
  };
  return {.images = fields.number(json, place, "images"),
          .progressive = fields.number(json, place, "progressive"),
          .grayscale = fields.number(json, place, "grayscale"),
          .cmyk = fields.number(json, place, "cmyk"),
          .alpha = optional_number(fields, json, place, "alpha"),
          .misnamed = optional_number(fields, json, place, "misnamed"),
          .width_min = small("width_min"),
          .width_max = small("width_max"),
          .height_min = small("height_min"),
          .height_max = small("height_max"),
          .pixels = fields.number(json, place, "pixels"),
          .channels = read_channels(fields, json, place + ".channels"),
          .reencoded = optional_number(fields, json, place, "encoded_anew")};
}

void read_index(ManifestFields& fields, const Json& json, Manifest& manifest) {
  if (fields.text(json, "index", "file") != kIndexFile) fields.fail("index.file", "is not 'index.bin'");
  manifest.index_bytes = fields.number(json, "index", "bytes");
  manifest.index_hash = fields.digest(json, "index", "sha256");
  if (json.is_object() && json.contains("table"))
    manifest.index_table = fields.digest(json, "index", "table");
  if (manifest.content) manifest.content = fields.digest(json, "index", "content");
}

// Rejects newer formats before anything else is parsed.
Status check_format(const Json& json, std::string_view subject) {
  if (!json.is_object() || json.value("format", Json()) != kFormat) {
    return invalid("{}: is not a manifest of a dataset (no \"format\": \"{}\")", subject, kFormat);
  }
  const Json version = json.value("format_version", Json());
  if (version != kFormatVersion) {
    return invalid("{}: has format version {}, this Stoker version reads {}", subject, json_text(version),
                   kFormatVersion)
        .cure("update Stoker");
  }
  const Json features = json.value("incompatible_features", Json());
  if (!features.is_array()) return corrupt("{}: incompatible_features: is not a list", subject);
  for (const Json& feature : features) {
    if (feature == kBlocksByCrc || feature == kIndexContent) continue;
    return invalid("{}: needs the feature {}, which this Stoker version does not support", subject,
                   json_text(feature))
        .cure("update Stoker");
  }
  return {};
}

void check_consistency(ManifestFields& fields, const Manifest& manifest) {
  std::set<std::string_view> files;
  std::set<std::string_view> names;
  for (const SplitInfo& split : manifest.splits) {
    if (!names.insert(split.name).second) fields.fail("splits", format("'{}' appears twice", split.name));
    for (const ShardInfo& shard : split.shards) {
      if (!files.insert(shard.file).second) fields.fail("splits", format("'{}' appears twice", shard.file));
    }
    if (!split.class_samples.empty() && split.class_samples.size() != manifest.schema.classes.size()) {
      fields.fail("splits", format("'{}' counts {}, the schema has {}", split.name,
                                   counted(split.class_samples.size(), "class", "classes"),
                                   manifest.schema.classes.size()));
    }
  }
  if (!manifest.schema.classes.empty() && !manifest.schema.has_labels) {
    fields.fail("schema.classes", "has names, but there are no labels");
  }
  if (manifest.splits.empty()) fields.fail("splits", "is empty");
  if (const std::string version = dataset_version(manifest); version != manifest.version) {
    fields.fail("version", format("is {}, the content has {}", printable(manifest.short_version()),
                                  version.substr(0, 8)));
  }
}

}  // namespace

Result<Manifest> parse_manifest(std::string_view text, std::string_view subject) {
  const Json json = parse_json<Json>(text);
  if (json.is_discarded()) return corrupt("{}: is not JSON", subject);
  STOKER_RETURN_IF_ERROR(check_format(json, subject));
  ManifestFields fields(subject);
  Manifest manifest;
  manifest.version = fields.text(json, "", "version");
  manifest.schema = read_schema(fields, fields.at(json, "", "schema"));
  for (const Json& feature : json["incompatible_features"]) {
    if (feature == kBlocksByCrc) manifest.schema.block_hash = BlockHash::crc32c;
    if (feature == kIndexContent) manifest.content.emplace();
  }
  fields.list(json, "", "splits", [&](const Json& split, const std::string& at) {
    if (fields.status().ok()) manifest.splits.push_back(read_split(fields, split, at));
  });
  read_index(fields, fields.at(json, "", "index"), manifest);
  const Json& statistics = fields.at(json, "", "statistics");
  manifest.images = read_images(fields, fields.at(statistics, "statistics", "images"));
  const Json& left_out = fields.at(statistics, "statistics", "left_out");
  if (!left_out.is_object()) fields.fail("statistics.left_out", "is not an object");
  if (!fields.status().ok()) return fields.status();
  for (const auto& [reason, count] : left_out.items()) {
    manifest.left_out[reason] = fields.number(left_out, "statistics.left_out", reason);
  }
  if (const auto source = json.find("source"); source != json.end()) {
    manifest.source = {.file = fields.text(*source, "source", "dvc"),
                       .md5 = fields.text(*source, "source", "md5"),
                       .bytes = fields.number(*source, "source", "bytes"),
                       .files = fields.number(*source, "source", "files")};
  }
  check_consistency(fields, manifest);
  if (!fields.status().ok()) return fields.status();
  return manifest;
}

}  // namespace stoker::dataset
