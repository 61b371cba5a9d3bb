#include "cli/site/node_cache.h"

#include <algorithm>

#include "base/process.h"
#include "cli/site/sites.h"
#include "stage/cache/cache_folder.h"

namespace stoker::cli {
namespace {

// With the values of its variables, "$SCRATCH/x"; empty if one is not set.
Path with_values(std::string_view path, const Environment& environment) {
  std::string text;
  while (!path.empty()) {
    const std::size_t begin = std::min(path.find('$'), path.size());
    text += path.substr(0, begin);
    path.remove_prefix(begin);
    if (path.empty()) break;
    path.remove_prefix(1);
    const auto is_letter = [](char c) {
      return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    const auto end = static_cast<std::size_t>(std::ranges::find_if_not(path, is_letter) - path.begin());
    const std::string value = variable(environment, path.substr(0, end));
    if (value.empty()) return {};
    text += value;
    path.remove_prefix(end);
  }
  return text;
}

}  // namespace

NodeCache node_cache(const Path& requested, std::string_view site) {
  const Environment environment = current_environment();
  const NodeCache own{stage::cache_path(requested, environment), {}};
  if (!requested.empty() || !variable(environment, "STOKER_CACHE").empty() || site == "none") return own;
  const auto found = find_site_by_name(site);
  if (!found.ok()) return own;
  const auto storage = found->site.storage.find("cache");
  if (storage == found->site.storage.end() || !storage->second.path) return own;
  const Path folder = with_values(*storage->second.path, environment);
  if (!folder.is_absolute()) return own;
  return {folder / stage::cache_name(), storage->second.quota.value_or(ByteCount{})};
}

}  // namespace stoker::cli
