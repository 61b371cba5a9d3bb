// Options and names that the commands of the cache share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/site/node_cache.h"
#include "stage/cache/eviction.h"

namespace stoker::cli {

/// The option --cache.
class CacheOption {
 public:
  void declare(Arguments& arguments);
  Path path() const { return cache().folder; }
  /// Of the site of this cluster, if the option is not set.
  NodeCache cache() const { return node_cache(requested_, "auto"); }

 private:
  std::string requested_;
};

/// The options --quota and --reserve.
class LimitOptions {
 public:
  void declare(Arguments& arguments);
  /// `quota` applies without --quota.
  stage::CacheLimits limits(ByteCount quota) const;

 private:
  std::optional<ByteCount> quota_;
  std::optional<ByteCount> reserve_;
};

/// Datasets of the cache by version, its start, or the folder of their source; all of them for no word.
/// NotFound, naming the word.
Result<std::vector<stage::CachedDataset>> chosen_datasets(const stage::CacheFolder& cache,
                                                          const std::vector<std::string>& words);

}  // namespace stoker::cli
