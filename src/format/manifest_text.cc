#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/json/json.h"
#include "format/manifest.h"

namespace stoker::formats {

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

Json schema_json(const Schema& schema) {
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
  if (manifest.content) json["content"] = hex(*manifest.content);
  return json;
}

Json statistics_json(const ImageStatistics& images) {
  Json json = {{"images", images.images},         {"progressive", images.progressive},
               {"grayscale", images.grayscale},   {"cmyk", images.cmyk},
               {"alpha", images.alpha},           {"misnamed", images.misnamed},
               {"width_min", images.width_min},   {"width_max", images.width_max},
               {"height_min", images.height_min}, {"height_max", images.height_max},
               {"pixels", images.pixels},         {"encoded_anew", images.encoded_anew}};
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
class Fields {
 public:
  explicit Fields(std::string_view subject) : subject_(subject) {}

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

ShardInfo read_shard(Fields& fields, const Json& json, const std::string& place) {
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

SplitInfo read_split(Fields& fields, const Json& json, const std::string& place) {
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

Schema read_schema(Fields& fields, const Json& json) {
  Schema schema;
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
std::uint64_t optional_number(Fields& fields, const Json& json, std::string_view place,
                              std::string_view key) {
  return json.is_object() && json.contains(key) ? fields.number(json, place, key) : 0;
}

ChannelSums read_channels(Fields& fields, const Json& images, const std::string& place) {
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
    if (count != into.size()) fields.fail(format("{}.{}", place, key), "has not three numbers");
  };
  three("sum", sums.sum);
  three("square_sum", sums.square_sum);
  return sums;
}

ImageStatistics read_images(Fields& fields, const Json& json) {
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
          .encoded_anew = optional_number(fields, json, place, "encoded_anew")};
}

void read_index(Fields& fields, const Json& json, Manifest& manifest) {
  if (fields.text(json, "index", "file") != kIndexFile) fields.fail("index.file", "is not 'index.bin'");
  manifest.index_bytes = fields.number(json, "index", "bytes");
  manifest.index_hash = fields.digest(json, "index", "sha256");
  if (manifest.content) manifest.content = fields.digest(json, "index", "content");
}

// Refuses what a newer stoker wrote before anything else is read.
Status check_format(const Json& json, std::string_view subject) {
  if (!json.is_object() || json.value("format", Json()) != kFormat) {
    return invalid("{}: is not a manifest of a dataset (no \"format\": \"{}\")", subject, kFormat);
  }
  const Json version = json.value("format_version", Json());
  if (version != kFormatVersion) {
    return invalid("{}: has format version {}, this stoker reads {}", subject, json_text(version),
                   kFormatVersion)
        .cure("update stoker");
  }
  const Json features = json.value("incompatible_features", Json());
  if (!features.is_array()) return corrupt("{}: incompatible_features: is not a list", subject);
  for (const Json& feature : features) {
    if (feature == kBlocksByCrc || feature == kIndexContent) continue;
    return invalid("{}: needs the feature {}, which this stoker does not know", subject, json_text(feature))
        .cure("update stoker");
  }
  return {};
}

void check_whole(Fields& fields, const Manifest& manifest) {
  std::set<std::string_view> files;
  std::set<std::string_view> names;
  for (const SplitInfo& split : manifest.splits) {
    if (!names.insert(split.name).second) fields.fail("splits", format("'{}' is there twice", split.name));
    for (const ShardInfo& shard : split.shards) {
      if (!files.insert(shard.file).second) fields.fail("splits", format("'{}' is there twice", shard.file));
    }
    if (!split.class_samples.empty() && split.class_samples.size() != manifest.schema.classes.size()) {
      fields.fail("splits", format("'{}' counts {} classes, the schema has {}", split.name,
                                   split.class_samples.size(), manifest.schema.classes.size()));
    }
  }
  if (!manifest.schema.classes.empty() && !manifest.schema.has_labels) {
    fields.fail("schema.classes", "are named, but there are no labels");
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
  RETURN_IF_ERROR(check_format(json, subject));
  Fields fields(subject);
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
  check_whole(fields, manifest);
  if (!fields.status().ok()) return fields.status();
  return manifest;
}

}  // namespace stoker::formats
