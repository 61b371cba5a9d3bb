#include "checkpoint/retention.h"

#include <algorithm>

#include "base/file.h"
#include "checkpoint/catalog.h"
#include "checkpoint/layout.h"
#include "checkpoint/lease.h"

namespace stoker::checkpoint {

std::vector<Path> remove_abandoned(const Path& directory, WallTime now) {
  std::vector<Path> removed;
  const auto names = list_directory(directory);
  if (!names.ok()) return removed;
  for (const std::string& name : *names) {
    const Path folder = directory / name;
    const auto hidden = hidden_folder(name);
    if (!hidden || !folder_exists(folder)) continue;
    if (!hidden->is_removed && is_pending_alive(folder, now)) continue;
    if (remove_tree(folder).ok()) removed.push_back(folder);
  }
  return removed;
}

Status remove_step(const Path& folder) {
  const auto step = step_of_folder(folder.filename().string());
  CHECK(step.has_value());
  const Path away = folder.parent_path() / removed_folder_name(*step);
  RETURN_IF_ERROR(rename_path(folder, away));
  return remove_tree(away);
}

Result<std::vector<Path>> keep_newest(const Path& directory, int keep, const Path& reading) {
  std::vector<Path> removed;
  OK_OR_RETURN(steps, step_folders(directory));
  if (keep <= 0 || steps.size() <= static_cast<std::size_t>(keep)) return removed;
  std::error_code error;
  const Path spared = reading.empty() ? reading : std::filesystem::weakly_canonical(reading, error);
  int valid = 0;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const Path folder = directory / step_folder_name(*step);
    if (valid < keep) {
      const auto report = verify_step(folder, Depth::structure);
      valid += report.ok() && report->damages.empty() ? 1 : 0;
      continue;
    }
    if (std::filesystem::weakly_canonical(folder, error) == spared) continue;
    RETURN_IF_ERROR(remove_step(folder));
    removed.push_back(folder);
  }
  return removed;
}

}  // namespace stoker::checkpoint
