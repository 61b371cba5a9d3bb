#include "data/look/export_index.h"

#include <algorithm>
#include <bit>

#include <nlohmann/json.hpp>

#include "data/look/shard_scan.h"
#include "data/pack/shard/container.h"

namespace stoker::data {

static_assert(std::endian::native == std::endian::little, "Energon's index is little-endian");

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kEnergonFolder = ".nv-meta";

std::string dump(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

// One line for each sample: ext offset size name, for each component.
Result<std::string> dali_index(const std::string& subject, const ShardScan& scan) {
  std::string text = format("v1.2 {}\n", scan.samples.size());
  for (const ShardSample& sample : scan.samples) {
    bool is_first = true;
    for (const ShardMember& m : sample.members) {
      if (m.name.find_first_of(" \t\n") != std::string::npos) {
        return invalid("{}: member '{}': DALI's index cannot hold names with blanks", subject,
                       printable(m.name));
      }
      text += format("{}{} {} {} {}", is_first ? "" : " ", m.extension, m.data_offset, m.bytes, m.name);
      is_first = false;
    }
    text += '\n';
  }
  return text;
}

// DALI's index of records: offset and size of each.
std::string dali_record_index(const ShardScan& scan) {
  std::string text;
  for (const ShardSample& sample : scan.samples) text += format("{} {}\n", sample.offset, sample.bytes);
  return text;
}

// Where each sample's first header lies, and where the last one ends.
std::string energon_index(const ShardScan& scan) {
  std::string bytes;
  const auto put = [&](std::uint64_t offset) {
    bytes.append(reinterpret_cast<const char*>(&offset), sizeof offset);
  };
  for (const ShardSample& sample : scan.samples) put(sample.members.front().header_offset);
  put(scan.end);
  return bytes;
}

std::string split_wids(const formats::SplitInfo& split) {
  Json shards = Json::array();
  for (const formats::ShardInfo& shard : split.shards)
    shards.push_back({{"url", shard.file}, {"nsamples", shard.samples}, {"filesize", shard.bytes}});
  return dump({{"__kind__", "wids-shard-index-v1"},
               {"wids_version", 1},
               {"name", split.name},
               {"shardlist", shards}});
}

// YAML in its plainest form: quoted names, one a line.
std::string energon_splits(const formats::Manifest& manifest) {
  std::string text = "exclude: []\nsplit_parts:\n";
  for (const std::string_view wanted : {"train", "val", "test"}) {
    text += format("  {}:", wanted);
    bool has_any = false;
    for (const formats::SplitInfo& split : manifest.splits) {
      const bool is_it = split.name == wanted || (wanted == "val" && split.name.starts_with("valid")) ||
                         (wanted == "train" && split.name == "all");
      if (!is_it) continue;
      for (const formats::ShardInfo& shard : split.shards)
        text += format("\n  - {}", Json(shard.file).dump());
      has_any = has_any || !split.shards.empty();
    }
    text += has_any ? "\n" : " []\n";
  }
  return text;
}

std::string energon_dataset(const ShardSample& sample, const formats::Manifest& manifest) {
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
                Json(image).dump(), Json(label).dump());
}

Status write_energon(const Path& folder, const formats::Manifest& manifest, const ShardSample& first,
                     std::vector<std::string>& written) {
  const Path meta = folder / kEnergonFolder;
  RETURN_IF_ERROR(make_directories(meta));
  Json counts = Json::object();
  for (const formats::SplitInfo& split : manifest.splits) {
    for (const formats::ShardInfo& shard : split.shards) counts[shard.file] = shard.samples;
  }
  const auto put = [&](std::string_view name, const std::string& text) {
    written.push_back(format("{}/{}", kEnergonFolder, name));
    return write_file(meta / name, text);
  };
  RETURN_IF_ERROR(put(".info.json", dump({{"shard_counts", counts}})));
  RETURN_IF_ERROR(put(".info.yaml", dump({{"shard_counts", counts}})));  // JSON is YAML
  RETURN_IF_ERROR(put("split.yaml", energon_splits(manifest)));
  return put("dataset.yaml", energon_dataset(first, manifest));
}

}  // namespace

Result<std::vector<std::string>> export_index(const Path& folder, const formats::Manifest& manifest,
                                              IndexExport what, Progress& progress) {
  const bool has_records = manifest.schema.container == to_text(ContainerKind::tfrecord);
  if (has_records && what != IndexExport::dali) {
    return invalid("{}: its shards are tfrecord, which {} does not read (--export)",
                   printable(folder.string()), what == IndexExport::wids ? "webdataset" : "Energon")
        .cure("stoker data pack SOURCE OUT --format tar --labels cls");
  }
  std::vector<std::string> written;
  std::uint64_t done = 0;
  ShardSample first;
  for (const formats::SplitInfo& split : manifest.splits) {
    if (what == IndexExport::wids) {
      written.push_back(split.name + ".wids.json");
      RETURN_IF_ERROR(write_file(folder / written.back(), split_wids(split)));
      continue;
    }
    for (const formats::ShardInfo& shard : split.shards) {
      OK_OR_RETURN(scan, scan_shard(folder / shard.file));
      progress.report({.done = ++done, .total = manifest.shard_count(), .unit = "shards", .bytes = {}});
      if (progress.stop_requested())
        return cancelled("{}: stopped before all shards were read", printable(folder.string()));
      if (scan.samples.size() != shard.samples) {
        return corrupt("{}: has {} samples, the manifest says {}", printable((folder / shard.file).string()),
                       scan.samples.size(), shard.samples);
      }
      if (first.members.empty() && !scan.samples.empty()) first = scan.samples.front();
      const std::string stem = shard.file.substr(0, shard.file.rfind('.'));
      std::string content = has_records ? dali_record_index(scan) : energon_index(scan);
      if (what == IndexExport::dali && !has_records) {
        OK_OR_RETURN(text, dali_index(shard.file, scan));
        content = std::move(text);
      }
      written.push_back(what == IndexExport::dali ? stem + ".idx" : shard.file + ".idx");
      RETURN_IF_ERROR(write_file(folder / written.back(), content));
    }
  }
  if (what == IndexExport::energon) RETURN_IF_ERROR(write_energon(folder, manifest, first, written));
  std::sort(written.begin(), written.end());
  return written;
}

}  // namespace stoker::data
