#include "launch/start/container.h"

#include <algorithm>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"

namespace stoker::launch {
namespace {

// Host folders that ch-run always mounts.
constexpr std::string_view kAlwaysMounted[] = {"/tmp", "/dev", "/proc", "/sys"};

bool is_inside(const Path& path, const Path& folder) {
  const Path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

// Host folders that the ranks use, without duplicates and nested folders.
std::vector<std::pair<std::string_view, Path>> folders_of(const job::Job& job) {
  std::vector<std::pair<std::string_view, Path>> wanted = {{"working_directory", job.working_directory},
                                                           {"record.directory", job.record.directory}};
  if (job.checkpoint.directory) wanted.emplace_back("checkpoint.directory", *job.checkpoint.directory);
  if (job.is_staged() && job.stage.directory) wanted.emplace_back("stage.directory", *job.stage.directory);
  // The ranks read the cache itself.
  const auto cache = environment_value("STOKER_CACHE");
  if (job.is_staged() && !job.stage.directory && cache && !cache->empty())
    wanted.emplace_back("STOKER_CACHE", *cache);
  for (const auto& [name, source] : job.data) wanted.emplace_back("data", source.source);
  std::vector<std::pair<std::string_view, Path>> kept;
  for (const auto& [key, path] : wanted) {
    const auto covers = [&](const Path& other) { return is_inside(path, other); };
    const bool is_seen = std::any_of(std::begin(kAlwaysMounted), std::end(kAlwaysMounted), covers);
    const bool is_kept =
        std::any_of(kept.begin(), kept.end(), [&](const auto& each) { return covers(each.second); });
    if (!is_seen && !is_kept) kept.emplace_back(key, path);
  }
  return kept;
}

bool has_program(const std::string& search_path, const char* name) {
  const auto folders = split(search_path, ':');
  return std::any_of(folders.begin(), folders.end(), [&](std::string_view folder) {
    return !folder.empty() && ::access((Path(folder) / name).c_str(), X_OK) == 0;
  });
}

}  // namespace

Status check_container(const job::Job& job, const std::string& search_path) {
  if (!job.environment.container) return {};
  const Path& image = *job.environment.container;
  if (!path_exists(image)) {
    return not_found("environment.container: {}: no such image", image)
        .cure("ch-convert docker://python:3.11 {}", shell_quote(image.string()));
  }
  if (!has_program(search_path, "ch-run")) {
    return not_found("environment.container: there is no ch-run in PATH (Charliecloud)")
        .cure("module load charliecloud, or Debian's package charliecloud");
  }
  if (!folder_exists(image)) return {};  // only ch-run can read a SquashFS
  for (const auto& [key, folder] : folders_of(job)) {
    if (folder_exists(image / folder.relative_path())) continue;
    return invalid("{}: {} cannot be seen in the container: the image has no folder with that name", key,
                   folder)
        .cure("mkdir -p {}", shell_quote((image / folder.relative_path()).string()));
  }
  return {};
}

Status check_staged_container(const job::Job& job, const Path& folder) {
  if (!job.environment.container || job.stage.directory) return {};
  const auto covers = [&](const Path& other) { return is_inside(folder, other); };
  if (std::any_of(std::begin(kAlwaysMounted), std::end(kAlwaysMounted), covers)) return {};
  return invalid("stage: {} cannot be seen in the container (environment.container)", folder)
      .cure("stage: {{directory: {}}}      (a folder that exists in the image)", folder.parent_path());
}

std::vector<std::string> wrap_in_container(const job::Job& job, std::vector<std::string> command) {
  if (!job.environment.container) return command;
  std::vector<std::string> words = {"ch-run", "--cd=" + job.working_directory.string()};
  for (const auto& [key, folder] : folders_of(job)) words.push_back("--bind=" + folder.string());
  words.push_back(job.environment.container->string());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

}  // namespace stoker::launch
