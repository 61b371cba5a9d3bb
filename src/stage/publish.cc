#include "stage/publish.h"

#include <utility>

namespace stoker::stage {

Result<PendingFolder> PendingFolder::create(const Path& folder) {
  Path path = folder / (".staging-" + random_name());
  STOKER_RETURN_IF_ERROR(make_directory(path));
  return PendingFolder(folder, std::move(path));
}

PendingFolder::PendingFolder(PendingFolder&& other) noexcept
    : folder_(std::move(other.folder_)), path_(std::exchange(other.path_, Path())) {}

PendingFolder::~PendingFolder() {
  if (!path_.empty()) (void)remove_tree(path_);
}

Status PendingFolder::publish() && {
  STOKER_ASSIGN_OR_RETURN(names, list_directory(path_));
  for (const std::string& name : names) {
    std::error_code error;
    const auto there = std::filesystem::symlink_status(folder_ / name, error);
    if (there.type() != std::filesystem::file_type::not_found)
      return exists("{}: already exists (two staged items have the same name)", folder_ / name);
  }
  for (const std::string& name : names) STOKER_RETURN_IF_ERROR(rename_path(path_ / name, folder_ / name));
  return {};
}

}  // namespace stoker::stage
