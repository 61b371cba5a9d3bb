#include "rank/saved.h"

#include <algorithm>

#include "base/file.h"
#include "rank/environment.h"

namespace stoker::rank {

bool has_saved(const Environment& environment) {
  const std::string folder = variable(environment, "STOKER_CHECKPOINT_DIR");
  if (folder.empty()) return true;
  const auto names = list_directory(folder);
  if (!names.ok()) return path_exists(folder);
  // What is hidden was never committed, or is being removed.
  return std::any_of(names->begin(), names->end(),
                     [](const std::string& name) { return !name.starts_with('.'); });
}

}  // namespace stoker::rank
