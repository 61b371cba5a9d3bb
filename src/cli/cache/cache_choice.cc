#include "cli/cache/cache_choice.h"

namespace stoker::cli {
namespace {

constexpr std::size_t kShortestVersion = 4;

}  // namespace

void CacheOption::declare(Arguments& arguments) {
  arguments.option(
      "--cache", &requested_, "DIR",
      "Folder of the cache (default: $STOKER_CACHE, else the site's, else on the node-local disk)");
}

void LimitOptions::declare(Arguments& arguments) {
  arguments.option("--quota", &quota_, "SIZE", "Let the cache hold at most SIZE (default: the site's limit)");
  arguments.option("--reserve", &reserve_, "SIZE", "Leave SIZE of the disk free (default: 1GB)");
}

stage::CacheLimits LimitOptions::limits(ByteCount quota) const {
  stage::CacheLimits limits;
  limits.quota = quota_.value_or(quota);
  if (reserve_) limits.reserve = *reserve_;
  return limits;
}

Result<std::vector<stage::CachedDataset>> chosen_datasets(const stage::CacheFolder& cache,
                                                          const std::vector<std::string>& words) {
  STOKER_ASSIGN_OR_RETURN(all, stage::cached_datasets(cache));
  if (words.empty()) return std::move(all);
  std::vector<stage::CachedDataset> chosen;
  for (const std::string& word : words) {
    const Path source = std::filesystem::absolute(word).lexically_normal();
    const std::size_t before = chosen.size();
    for (const stage::CachedDataset& dataset : all) {
      const bool is_version = word.size() >= kShortestVersion && dataset.version.starts_with(word);
      if (is_version || dataset.use.source.lexically_normal() == source) chosen.push_back(dataset);
    }
    if (chosen.size() == before) {
      return not_found("{}: no dataset '{}' in the cache", cache.path(), printable(word))
          .cure("stoker cache list");
    }
  }
  return chosen;
}

}  // namespace stoker::cli
