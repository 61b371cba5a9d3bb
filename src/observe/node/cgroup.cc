#include "observe/node/cgroup.h"

#include <algorithm>

#include "base/file.h"

namespace stoker::observe {

namespace {

/// The path of this process in a hierarchy: "0::/path" (v2, no controller) or "7:memory:/path" (v1).
std::optional<std::string> path_in(std::string_view groups, std::string_view controller) {
  for (std::string_view line : split(groups, '\n')) {
    const auto parts = split(line, ':');
    if (parts.size() < 3) continue;
    const auto controllers = split(parts[1], ',');
    const bool fits = controller.empty() ? parts[1].empty()
                                         : std::find(controllers.begin(), controllers.end(), controller) !=
                                               controllers.end();
    if (fits) return std::string(line.substr(parts[0].size() + parts[1].size() + 2));
  }
  return std::nullopt;
}

/// "/slurm/uid_0/job_12/step_0/task_0" → "slurm/uid_0/job_12"; other paths without their first slash.
Path group_of_job(std::string_view path) {
  Path group;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == "." || part == "..") continue;
    group /= part;
    std::int64_t job = 0;
    if (part.starts_with("job_") && parse_number(part.substr(4), &job)) break;
  }
  return group;
}

/// In `root`/`group` or, within a container, in `root`; nullopt if `file` is in neither.
std::optional<Path> folder_with(const Path& root, const Path& group, const char* file) {
  for (const Path& folder : {root / group, root}) {
    if (path_exists(folder / file)) return folder;
  }
  return std::nullopt;
}

}  // namespace

JobCgroup JobCgroup::find(const NodeRoots& roots) {
  JobCgroup found;
  const auto groups = read_pseudo_file(roots.proc / "self/cgroup");
  if (!groups.ok()) return found;
  const Path root = roots.cgroups();
  if (const auto path = path_in(*groups, "memory")) {
    const Path group = group_of_job(*path);
    if (const auto folder = folder_with(root / "memory", group, "memory.usage_in_bytes")) {
      found.version_ = Version::v1;
      found.root_ = root / "memory";
      found.memory_ = *folder;
      found.name_ = format("cgroup v1 /{}", *folder == found.root_ ? "" : group.string());
    }
    const auto cpu = path_in(*groups, "cpuacct");
    const Path cpu_group = cpu ? group_of_job(*cpu) : Path();
    if (!cpu_group.empty() && path_exists(root / "cpuacct" / cpu_group / "cpuacct.usage"))
      found.cpu_ = root / "cpuacct" / cpu_group;
    if (found.version_ == Version::v1) return found;
  }
  const auto path = path_in(*groups, "");
  if (!path) return found;
  const Path group = group_of_job(*path);
  if (const auto folder = folder_with(root, group, "memory.current")) {
    found.version_ = Version::v2;
    found.root_ = root;
    found.memory_ = found.cpu_ = *folder;
    found.name_ = format("cgroup v2 /{}", *folder == root ? "" : group.string());
  }
  return found;
}

Counter JobCgroup::limit_of(const char* file) const {
  constexpr std::uint64_t kUnlimited = 1ull << 60;  // v1 represents "none" as a number near 2^63
  constexpr int kMostLevels = 32;
  Counter least;
  Path folder = memory_;
  for (int level = 0; level < kMostLevels; ++level) {
    const Counter limit = read_counter(folder / file);
    if (limit && *limit > 0 && *limit < kUnlimited) least = std::min(*limit, least.value_or(*limit));
    if (folder == root_ || !folder.has_relative_path()) break;
    folder = folder.parent_path();
  }
  return least;
}

// Counts of v1 leave out the groups of steps and tasks below.
Counter JobCgroup::kills_of_v1() const {
  constexpr std::size_t kMostGroups = 64;
  Counter kills;
  std::vector<Path> folders = {memory_};
  for (std::size_t i = 0; i < folders.size(); ++i) {
    if (const auto text = read_pseudo_file(folders[i] / "memory.oom_control"); text.ok())
      kills = sum_of(kills, value_after(*text, "oom_kill"));
    if (memory_ == root_) break;  // groups of other jobs
    for (const std::string& name : names_in(folders[i])) {
      const bool is_group = name.starts_with("step_") || name.starts_with("task_");
      if (is_group && folders.size() < kMostGroups) folders.push_back(folders[i] / name);
    }
  }
  return kills;
}

CgroupUse JobCgroup::read() const {
  CgroupUse use;
  if (version_ == Version::v1) {
    use.memory_bytes = read_counter(memory_ / "memory.usage_in_bytes");
    use.limit_bytes = limit_of("memory.limit_in_bytes");
    use.oom_kills = kills_of_v1();
    const Counter ns = cpu_.empty() ? std::nullopt : read_counter(cpu_ / "cpuacct.usage");
    if (ns) use.cpu_s = static_cast<double>(*ns) * 1e-9;
  } else if (version_ == Version::v2) {
    use.memory_bytes = read_counter(memory_ / "memory.current");
    use.limit_bytes = limit_of("memory.max");
    if (const auto events = read_pseudo_file(memory_ / "memory.events"); events.ok())
      use.oom_kills = value_after(*events, "oom_kill");
    const auto stat = read_pseudo_file(cpu_ / "cpu.stat");
    const Counter us = stat.ok() ? value_after(*stat, "usage_usec") : std::nullopt;
    if (us) use.cpu_s = static_cast<double>(*us) * 1e-6;
  }
  return use;
}

}  // namespace stoker::observe
