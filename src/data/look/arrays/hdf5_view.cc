#include "data/look/arrays/hdf5_view.h"

#include "format/samples/view.h"
#include "format/shard_source.h"

namespace stoker::data {

namespace {

constexpr std::string_view kEnding = ".view.h5";

}  // namespace

bool is_hdf5_view(std::string_view file) { return file.ends_with(kEnding); }

Result<std::vector<std::string>> write_hdf5_views(const Path& dataset, ViewedSplits which) {
  OK_OR_RETURN(opened, formats::open_dataset(dataset));
  std::vector<std::string> written;
  std::size_t section = 0;
  for (const formats::SplitInfo& split : opened.manifest.splits) {
    std::vector<formats::ViewedShard> shards;
    for (const formats::ShardInfo& shard : split.shards)
      shards.push_back({shard.file, &opened.index.sections()[section++]});
    if (shards.empty() || (shards.size() == 1 && which == ViewedSplits::several_shards)) continue;
    written.push_back(split.name + std::string(kEnding));
    RETURN_IF_ERROR(formats::write_hdf5_view(dataset, written.back(), shards));
  }
  return written;
}

}  // namespace stoker::data
