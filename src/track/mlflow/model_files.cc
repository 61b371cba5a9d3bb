#include "track/mlflow/model_files.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "base/file.h"

namespace stoker::track {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 10'000;
constexpr std::string_view kManifest = "manifest.json";

std::int64_t step_of(const std::string& name) {
  constexpr std::string_view kStep = "step-";
  std::int64_t step = -1;
  return name.starts_with(kStep) && parse_number(std::string_view(name).substr(kStep.size()), &step) ? step
                                                                                                     : -1;
}

// The highest step with a manifest, else what was written last. Hidden names are not complete.
Path newest_in(const Path& checkpoints) {
  std::tuple<std::int64_t, fs::file_time_type> best{-1, fs::file_time_type::min()};
  Path newest;
  const auto names = list_directory(checkpoints);
  if (!names.ok()) return newest;
  for (const std::string& name : *names) {
    std::error_code error;
    const Path path = checkpoints / name;
    const fs::file_status status = fs::symlink_status(path, error);
    if (name.starts_with('.') || !(fs::is_directory(status) || fs::is_regular_file(status))) continue;
    const std::int64_t step = path_exists(path / kManifest) ? step_of(name) : -1;
    const std::tuple found{step, fs::last_write_time(path, error)};
    if (error || (!newest.empty() && found <= best)) continue;
    best = found;
    newest = path;
  }
  return newest;
}

Status add_files(const Path& folder, const Path& below, ModelFiles* model) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder / below, error), end; !error && at != end;
       at.increment(error)) {
    if (fs::is_regular_file(at->symlink_status(error)))
      model->files.push_back(at->path().lexically_relative(folder));
    if (model->files.size() > kMostFiles)
      return invalid("{}: has more than {} files", printable(folder.string()), kMostFiles);
  }
  if (error) return posix_error(printable((folder / below).string()), error.value());
  std::ranges::sort(model->files);
  return {};
}

}  // namespace

Result<ModelFiles> find_model_files(const ModelChoice& choice) {
  const Path path = choice.path.empty() ? newest_in(choice.checkpoints) : choice.path;
  if (path.empty()) {
    return not_found("no checkpoint in {} (record.mlflow_register_path)",
                     printable(choice.checkpoints.string()));
  }
  if (!path_exists(path))
    return not_found("{} does not exist (record.mlflow_register_path)", printable(path.string()));
  ModelFiles model{.label = path.filename().string(), .folder = path, .files = {}};
  if (!folder_exists(path)) {
    model.folder = path.parent_path();
    model.files.push_back(path.filename());
    return model;
  }
  const bool is_step = step_of(model.label) >= 0 && path_exists(path / kManifest);
  if (is_step) model.files.emplace_back(kManifest);
  STOKER_RETURN_IF_ERROR(add_files(path, is_step ? "model" : "", &model));
  if (model.files.empty()) return not_found("{} has no files", printable(path.string()));
  return model;
}

}  // namespace stoker::track
