#include "sources/shards/dataset_listing.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "codec/chunks/parallel.h"
#include "sources/shards/shards_tree.h"
#include "sources/shards/source_builder.h"
#include "sources/shards/unpack_section.h"

namespace stoker::sources {

namespace {

// A shard with its section of the index.
struct DatasetShard {
  const dataset::ShardInfo& info;
  const dataset::IndexSection& section;
  std::uint32_t split = 0;
  UnpackedSection unpacked = {};  // of a chunked shard
};

// The sample's key, or its shard and number if the index has no keys.
std::string key_of(const DatasetShard& shard, std::uint64_t sample) {
  if (shard.section.has_keys()) return std::string(shard.section.key(sample));
  return format("{}/{:08}", shard.info.file.substr(0, shard.info.file.find('.')), sample);
}

Status add_section(const DatasetShard& shard, std::size_t classes, SourceBuilder& builder) {
  const dataset::IndexSection& section = shard.section;
  const std::string where = builder.tree().display_path(shard.info.file);
  const std::uint32_t number =
      builder.tree().add_shard(shard.info.file, shard.info.bytes, shard.unpacked.at.file);
  std::size_t next = 0;  // of the unpacked files
  std::vector<SourceMember> members;
  for (std::uint64_t sample = 0; sample < section.samples(); ++sample) {
    members.clear();
    for (std::uint32_t i = 0; i < section.component_count(sample); ++i) {
      const dataset::Component file = section.component(sample, i);
      const std::uint64_t offset = section.chunks() ? shard.unpacked.offsets[next++] : file.offset;
      members.push_back({.extension = section.names()[file.name],
                         .bytes = file.length,
                         .stamp = file.crc32c,
                         .place = {.shard = number, .crc32c = file.crc32c, .offset = offset}});
    }
    const std::int64_t label = section.has_labels() ? section.label(sample) : -1;
    if (classes > 0 && label >= static_cast<std::int64_t>(classes)) {
      return corrupt("{}: sample '{}' has label {} of {} classes", where, printable(key_of(shard, sample)),
                     label, classes);
    }
    STOKER_RETURN_IF_ERROR(builder.add(shard.split, key_of(shard, sample), label, members, where));
  }
  return {};
}

Status check_no_grid_windows(const std::string& where, const dataset::SideIndex& index) {
  const bool has_grid = std::ranges::any_of(index.sections(), [](const dataset::IndexSection& section) {
    const codec::ChunkMap* chunks = section.chunks();
    return chunks && chunks->has_windows() && !chunks->has_columns();
  });
  if (!has_grid) return {};
  return invalid("{}: its samples are windows over arrays, which are read in place and cannot be packed",
                 printable(where))
      .cure("copy the shards without {} and {} to pack their rows", dataset::kManifestFile,
            dataset::kIndexFile);
}

// Unpacks the chunked shards, several at once.
Status unpack_all(const SourceOptions& options, std::vector<DatasetShard>& shards, Progress& progress) {
  std::vector<DatasetShard*> chunked;
  for (DatasetShard& shard : shards)
    if (shard.section.chunks()) chunked.push_back(&shard);
  if (chunked.empty()) return {};
  ScratchFiles files(options.scratch, chunked.size());
  std::atomic<std::uint64_t> done{0};
  const auto work = [&](std::size_t i) -> Status {
    const Path path = Path(options.where) / chunked[i]->info.file;
    STOKER_ASSIGN_OR_RETURN(unpacked,
                            unpack_section(path, chunked[i]->section, {options.scratch, files}, progress));
    chunked[i]->unpacked = std::move(unpacked);
    progress.report({.done = ++done, .total = chunked.size(), .unit = "shards listed", .bytes = {}});
    return {};
  };
  return codec::parallel_for(static_cast<std::size_t>(std::max(1, options.threads)), chunked.size(), work);
}

void set_classes(const dataset::Manifest& manifest, PackSource& source) {
  const dataset::DatasetSchema& schema = manifest.schema;
  source.classes = schema.classes;
  for (std::size_t c = 0; c < schema.classes.size(); ++c) {
    const bool is_empty = std::ranges::all_of(manifest.splits, [c](const dataset::SplitInfo& split) {
      return c >= split.class_samples.size() || split.class_samples[c] == 0;
    });
    source.declares_classes = source.declares_classes || is_empty;
  }
  source.has_number_labels = schema.has_labels && schema.classes.empty();
}

}  // namespace

Result<PackSource> list_dataset(const SourceOptions& options, const dataset::OpenDataset& opened,
                                std::shared_ptr<RateLimiter> rate_limiter, Progress& progress) {
  const Path folder = options.where;
  STOKER_RETURN_IF_ERROR(check_no_grid_windows(options.where, opened.index));
  SourceBuilder builder(folder, ChecksumScope::file, std::move(rate_limiter));
  std::vector<DatasetShard> shards;
  for (const dataset::SplitInfo& split : opened.manifest.splits) {
    const std::uint32_t number = builder.split(split.name);
    for (const dataset::ShardInfo& info : split.shards)
      shards.push_back({.info = info, .section = opened.index.sections()[shards.size()], .split = number});
  }
  STOKER_RETURN_IF_ERROR(unpack_all(options, shards, progress));
  for (DatasetShard& shard : shards) {
    if (progress.stop_requested())
      return cancelled("{}: interrupted while listing", builder.tree().display_path(""));
    STOKER_RETURN_IF_ERROR(add_section(shard, opened.manifest.schema.classes.size(), builder));
    shard.unpacked = {};
  }
  set_classes(opened.manifest, builder.source());
  return builder.finish(folder);
}

}  // namespace stoker::sources
