#include "cli/site/node_cache.h"

#include "base/process.h"
#include "cli/site/sites.h"
#include "job/site/storage_folder.h"
#include "stage/cache/cache_folder.h"

namespace stoker::cli {
NodeCache node_cache(const Path& requested, std::string_view site) {
  const Environment environment = current_environment();
  const NodeCache own{stage::cache_path(requested, environment), {}};
  if (!requested.empty() || !variable(environment, "STOKER_CACHE").empty() || site == "none") return own;
  const auto found = find_site_by_name(site);
  if (!found.ok()) return own;
  const Path folder = job::storage_folder(found->site, "cache", environment);
  if (folder.empty()) return own;
  const job::SiteStorage& storage = found->site.storage.at("cache");
  return {folder / stage::cache_name(), storage.quota.value_or(ByteCount{}), storage.shared.value_or(false)};
}

}  // namespace stoker::cli
