#include "inspect/export/export_index.h"

#include <algorithm>
#include <optional>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "dataset/container_kind.h"
#include "dataset/hdf5_view.h"
#include "inspect/export/energon.h"
#include "sources/shard_scan.h"

namespace stoker::inspect {

namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) { return json_text(json, 1) + "\n"; }

// One line per sample: extension, offset, size and name of each component.
Result<std::string> dali_index(const std::string& subject, const sources::ShardScan& scan) {
  std::string text = format("v1.2 {}\n", scan.samples.size());
  for (const sources::ShardSample& sample : scan.samples) {
    bool is_first = true;
    for (const sources::ShardMember& m : sample.members) {
      if (m.name.find_first_of(" \t\n") != std::string::npos) {
        return invalid("{}: member '{}': DALI's index cannot contain names with spaces", subject,
                       printable(m.name));
      }
      text += format("{}{} {} {} {}", is_first ? "" : " ", m.extension, m.data_offset, m.bytes, m.name);
      is_first = false;
    }
    text += '\n';
  }
  return text;
}

// DALI's index of TFRecord: offset and size of each record.
std::string dali_record_index(const sources::ShardScan& scan) {
  std::string text;
  for (const sources::ShardSample& sample : scan.samples)
    text += format("{} {}\n", sample.offset, sample.bytes);
  return text;
}

std::string split_wids(const dataset::SplitInfo& split) {
  Json shards = Json::array();
  for (const dataset::ShardInfo& shard : split.shards)
    shards.push_back({{"url", shard.file}, {"nsamples", shard.samples}, {"filesize", shard.bytes}});
  return dump({{"__kind__", "wids-shard-index-v1"},
               {"wids_version", 1},
               {"name", split.name},
               {"shardlist", shards}});
}

}  // namespace
Result<IndexFiles> export_index(const Path& folder, const dataset::Manifest& manifest, IndexExport what,
                                Progress& progress) {
  const std::string& kind = manifest.schema.container;
  const bool has_records = kind == to_text(dataset::ContainerKind::tfrecord);
  if (what == IndexExport::hdf5 && kind == to_text(dataset::ContainerKind::hdf5)) {
    STOKER_ASSIGN_OR_RETURN(views, write_hdf5_views(folder, dataset::ViewedSplits::all));
    return IndexFiles{std::move(views), {}};
  }
  const bool is_read = kind == to_text(dataset::ContainerKind::tar) && what != IndexExport::hdf5;
  if (!is_read && !(has_records && what == IndexExport::dali)) {
    constexpr std::string_view kReaders[] = {"webdataset", "DALI", "Energon", "h5py"};
    return invalid("{}: its shards are {}, which {} cannot read (--export)", printable(folder.string()), kind,
                   kReaders[static_cast<std::size_t>(what)])
        .cure("stoker data pack SOURCE OUT --format {}",
              what == IndexExport::hdf5 ? "hdf5" : "tar --labels cls");
  }
  IndexFiles files;
  std::uint64_t done = 0;
  std::optional<EnergonFolder> energon;
  if (what == IndexExport::energon) {
    STOKER_ASSIGN_OR_RETURN(made, EnergonFolder::create(folder));
    energon.emplace(std::move(made));
  }
  for (const dataset::SplitInfo& split : manifest.splits) {
    if (what == IndexExport::wids) {
      files.written.push_back(split.name + ".wids.json");
      STOKER_RETURN_IF_ERROR(write_file(folder / files.written.back(), split_wids(split)));
      continue;
    }
    for (const dataset::ShardInfo& shard : split.shards) {
      STOKER_ASSIGN_OR_RETURN(scan, sources::scan_shard(folder / shard.file));
      progress.report({.done = ++done, .total = manifest.shard_count(), .unit = "shards", .bytes = {}});
      if (progress.stop_requested())
        return cancelled("{}: interrupted before all shards were read", printable(folder.string()));
      if (scan.samples.size() != shard.samples) {
        return corrupt("{}: has {}, the manifest has {}", printable((folder / shard.file).string()),
                       counted(scan.samples.size(), "sample"), shard.samples);
      }
      const std::string stem = shard.file.substr(0, shard.file.rfind('.'));
      files.written.push_back(energon ? shard.file + ".idx" : stem + ".idx");
      std::string content = has_records ? dali_record_index(scan) : energon_shard_index(scan);
      if (energon) STOKER_RETURN_IF_ERROR(energon->add(shard.file, scan));
      if (!energon && !has_records) {
        STOKER_ASSIGN_OR_RETURN(text, dali_index(shard.file, scan));
        content = std::move(text);
      }
      STOKER_RETURN_IF_ERROR(write_file(folder / files.written.back(), content));
    }
  }
  if (energon) {
    STOKER_ASSIGN_OR_RETURN(written, energon->finish(manifest));
    files.written.insert(files.written.end(), written.files.begin(), written.files.end());
    if (!written.note.empty()) files.notes.push_back(written.note);
  }
  std::sort(files.written.begin(), files.written.end());
  return files;
}

}  // namespace stoker::inspect
