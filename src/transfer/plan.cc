#include "transfer/plan.h"

#include <algorithm>
#include <set>

#include "codec/chunks/shard_file.h"
#include "stage/listing.h"
#include "transfer/copy_marker.h"

namespace stoker::transfer {
namespace {

constexpr std::uint64_t kMaxWhole = std::uint64_t{1} << 30;
constexpr std::string_view kLeftOut = "left-out.csv";

// Collects the files of a dataset.
class TransferPlanner {
 public:
  TransferPlanner(Endpoint& source, const std::string& folder, dataset::OpenDataset dataset)
      : source_(source), folder_(folder), plan_{.dataset = std::move(dataset), .files = {}} {}

  Result<TransferPlan> run() && {
    STOKER_RETURN_IF_ERROR(add_shards());
    const dataset::Manifest& manifest = plan_.dataset.manifest;
    PlannedFile index{.name = std::string(dataset::kIndexFile), .bytes = manifest.index_bytes, .blocks = {}};
    auto rest = plan_.dataset.index.bytes();
    if (rest.size() != index.bytes || sha256(rest) != manifest.index_hash)
      return corrupt("{}: differs from the manifest", printable(path_of(index.name)));
    for (; !rest.empty(); rest = rest.subspan(std::min<std::size_t>(rest.size(), kBlock)))
      index.blocks.push_back(sha256(rest.first(std::min<std::size_t>(rest.size(), kBlock))));
    STOKER_RETURN_IF_ERROR(add(std::move(index)));
    STOKER_ASSIGN_OR_RETURN(sizes, source_.sizes({path_of(kLeftOut), path_of(dataset::kManifestFile)}));
    if (sizes[0])
      STOKER_RETURN_IF_ERROR(add({.name = std::string(kLeftOut), .bytes = *sizes[0], .blocks = {}}));
    if (!sizes[1]) return not_found("{}: does not exist", printable(path_of(dataset::kManifestFile)));
    STOKER_RETURN_IF_ERROR(
        add({.name = std::string(dataset::kManifestFile), .bytes = *sizes[1], .blocks = {}}));
    STOKER_RETURN_IF_ERROR(check_sizes());
    STOKER_RETURN_IF_ERROR(count_ignored());
    return std::move(plan_);
  }

 private:
  std::string path_of(std::string_view name) const { return folder_ + "/" + std::string(name); }

  Status add_shards() {
    std::size_t section = 0;
    for (const dataset::SplitInfo& split : plan_.dataset.manifest.splits) {
      for (const dataset::ShardInfo& shard : split.shards) {
        const codec::ChunkMap* chunks = plan_.dataset.index.sections()[section++].chunks();
        plan_.shards += 1;
        if (chunks != nullptr && !chunks->parts().empty()) {
          STOKER_RETURN_IF_ERROR(add_parts(shard, chunks->parts()));
          continue;
        }
        STOKER_RETURN_IF_ERROR(add({.name = shard.file,
                                    .bytes = shard.bytes,
                                    .blocks = shard.blocks,
                                    .hash = plan_.dataset.manifest.schema.block_hash}));
      }
    }
    return {};
  }

  // A shard of several files: in its folder, or beside it.
  Status add_parts(const dataset::ShardInfo& shard, const std::vector<codec::ShardPart>& parts) {
    STOKER_ASSIGN_OR_RETURN(sizes, source_.sizes({path_of(shard.file)}));
    const bool is_folder = !sizes[0];
    for (const codec::ShardPart& part : parts) {
      const std::string name = is_folder ? shard.file + "/" + part.file : part.file;
      STOKER_RETURN_IF_ERROR(add({.name = name, .bytes = part.bytes, .blocks = {}}));
    }
    if (is_folder || names_.contains(shard.file)) return {};
    return add({.name = shard.file, .bytes = *sizes[0], .blocks = {}});
  }

  // The manifest and the index may come from a host: a name must not lead out of the folder.
  Status add(PlannedFile file) {
    const auto clean = stage::clean_name("", file.name);
    if (!clean.ok() || *clean != file.name || file.name.empty())
      return corrupt("{}: invalid name of a file '{}'", printable(folder_), printable(file.name));
    if (!names_.insert(file.name).second) return {};  // beside several shards
    plan_.bytes += file.bytes;
    plan_.files.push_back(std::move(file));
    return {};
  }

  Status check_sizes() {
    std::vector<std::string> paths;
    for (const PlannedFile& file : plan_.files) paths.push_back(path_of(file.name));
    STOKER_ASSIGN_OR_RETURN(sizes, source_.sizes(paths));
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (!sizes[i]) return not_found("{}: does not exist", printable(paths[i]));
      if (*sizes[i] != plan_.files[i].bytes)
        return corrupt("{}: has {} bytes, the manifest lists {}", printable(paths[i]), *sizes[i],
                       plan_.files[i].bytes);
    }
    return {};
  }

  Status count_ignored() {
    std::set<std::string> tops;
    for (const std::string& name : names_) tops.insert(name.substr(0, name.find('/')));
    STOKER_ASSIGN_OR_RETURN(marker, source_.sizes({path_of(kCopyMarker)}));
    if (marker[0]) tops.emplace(kCopyMarker);
    STOKER_ASSIGN_OR_RETURN(count, source_.entries(folder_));
    plan_.ignored = count > tops.size() ? count - tops.size() : 0;
    return {};
  }

  Endpoint& source_;
  const std::string folder_;
  TransferPlan plan_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<std::string> TransferPlan::folders() const {
  std::set<std::string> found;
  for (const PlannedFile& file : files) {
    const std::size_t slash = file.name.rfind('/');
    if (slash != std::string::npos) found.insert(file.name.substr(0, slash));
  }
  return {found.begin(), found.end()};
}

Result<TransferPlan> plan_transfer(Endpoint& source, const std::string& folder,
                                   dataset::OpenDataset dataset) {
  return TransferPlanner(source, folder, std::move(dataset)).run();
}

Status check_shards_of_parts(const dataset::OpenDataset& dataset, const Path& folder, Progress& progress) {
  std::size_t section = 0;
  for (const dataset::SplitInfo& split : dataset.manifest.splits) {
    for (const dataset::ShardInfo& shard : split.shards) {
      const codec::ChunkMap* chunks = dataset.index.sections()[section++].chunks();
      if (chunks == nullptr || chunks->parts().empty()) continue;
      STOKER_ASSIGN_OR_RETURN(file, codec::ShardFile::open(folder / shard.file, chunks->parts()));
      std::vector<std::byte> buffer;
      for (std::size_t block = 0; block < shard.blocks.size(); ++block) {
        if (progress.stop_requested()) return cancelled("{}: interrupted", printable(folder.string()));
        buffer.resize(std::min(kBlock, shard.bytes - block * kBlock));
        STOKER_RETURN_IF_ERROR(file.read_at(block * kBlock, buffer));
        const Digest found = dataset::block_digest(dataset.manifest.schema.block_hash, buffer);
        if (found == shard.blocks[block]) continue;
        return corrupt("{}: block {} of {} has the hash {}, the manifest lists {}",
                       printable(folder.string()), block, printable(shard.file), dataset::short_hash(found),
                       dataset::short_hash(shard.blocks[block]));
      }
    }
  }
  return {};
}

Result<std::string> read_through(Endpoint& source, const std::string& file) {
  STOKER_ASSIGN_OR_RETURN(sizes, source.sizes({file}));
  if (!sizes[0]) return not_found("{}: does not exist", printable(file));
  if (*sizes[0] > kMaxWhole) return corrupt("{}: larger than {}", printable(file), rounded({kMaxWhole}));
  std::string text;
  for (std::uint64_t block = 0; text.size() < *sizes[0]; ++block) {
    STOKER_ASSIGN_OR_RETURN(bytes, source.get(file, block, std::min(kBlock, *sizes[0] - text.size())));
    text += bytes;
  }
  return text;
}

Result<dataset::OpenDataset> open_through(Endpoint& source, const std::string& folder,
                                          const Path& temporary) {
  for (const std::string_view name : {dataset::kManifestFile, dataset::kIndexFile}) {
    STOKER_ASSIGN_OR_RETURN(text, read_through(source, folder + "/" + std::string(name)));
    STOKER_RETURN_IF_ERROR(write_file(temporary / name, text));
  }
  return dataset::open_dataset(temporary);
}

}  // namespace stoker::transfer
