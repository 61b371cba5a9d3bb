#include "job/site/storage_folder.h"

#include <algorithm>
#include <string>

namespace stoker::job {
namespace {

// "$SCRATCH/x" with the value; empty if a variable is not set.
Path with_values(std::string_view path, const stoker::Environment& environment) {
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

Path storage_folder(const Site& site, std::string_view name, const stoker::Environment& environment) {
  const auto found = site.storage.find(std::string(name));
  if (found == site.storage.end() || !found->second.path) return {};
  const Path folder = with_values(*found->second.path, environment);
  return folder.is_absolute() ? folder : Path();
}

}  // namespace stoker::job
