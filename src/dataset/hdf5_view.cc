#include "dataset/hdf5_view.h"

#include "dataset/array_view.h"
#include "dataset/shard_source.h"

namespace stoker::dataset {

namespace {

constexpr std::string_view kEnding = ".view.h5";

}  // namespace

bool is_hdf5_view(std::string_view file) { return file.ends_with(kEnding); }

Result<std::vector<std::string>> write_hdf5_views(const Path& dataset, ViewedSplits which) {
  STOKER_ASSIGN_OR_RETURN(opened, dataset::open_dataset(dataset));
  std::vector<std::string> written;
  std::size_t section = 0;
  for (const dataset::SplitInfo& split : opened.manifest.splits) {
    std::vector<dataset::ViewedShard> shards;
    for (const dataset::ShardInfo& shard : split.shards)
      shards.push_back({shard.file, &opened.index.sections()[section++]});
    if (shards.empty() || (shards.size() == 1 && which == ViewedSplits::several_shards)) continue;
    written.push_back(split.name + std::string(kEnding));
    STOKER_RETURN_IF_ERROR(dataset::write_hdf5_view(dataset, written.back(), shards));
  }
  return written;
}

}  // namespace stoker::dataset
