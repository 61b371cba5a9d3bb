#include "stage/publish.h"

#include <utility>

namespace stoker::stage {

Result<Pending> Pending::create(const Path& folder) {
  Path path = folder / (".staging-" + random_name());
  RETURN_IF_ERROR(make_directory(path));
  return Pending(folder, std::move(path));
}

Pending::Pending(Pending&& other) noexcept
    : folder_(std::move(other.folder_)), path_(std::exchange(other.path_, Path())) {}

Pending::~Pending() {
  if (!path_.empty()) (void)remove_tree(path_);
}

Status Pending::publish() && {
  OK_OR_RETURN(names, list_directory(path_));
  for (const std::string& name : names) {
    std::error_code error;
    const auto there = std::filesystem::symlink_status(folder_ / name, error);
    if (there.type() != std::filesystem::file_type::not_found)
      return exists("{}: is there already (two things staged have that name)", folder_ / name);
  }
  for (const std::string& name : names) RETURN_IF_ERROR(rename_path(path_ / name, folder_ / name));
  return {};
}

}  // namespace stoker::stage
