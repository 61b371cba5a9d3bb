#include "rank/checkpoint_presence.h"

#include <algorithm>

#include "base/file.h"
#include "base/process.h"

namespace stoker::rank {

bool has_any_checkpoint(const Environment& environment) {
  const std::string folder = variable(environment, "STOKER_CHECKPOINT_DIR");
  if (folder.empty()) return true;
  const auto names = list_directory(folder);
  if (!names.ok()) return path_exists(folder);
  // Hidden entries are uncommitted or being removed.
  return std::any_of(names->begin(), names->end(),
                     [](const std::string& name) { return !name.starts_with('.'); });
}

}  // namespace stoker::rank
