#include "observe/proc.h"

#include <algorithm>
#include <map>
#include <unistd.h>

#include "base/file.h"

namespace stoker::observe {

namespace {

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  return parse_number(trim(text), &value) ? value : 0;
}

/// The fields of /proc/<pid>/stat from the third (state) on; empty if it cannot be read. The command name
/// before them may contain any character, so the last ')' counts.
std::vector<std::string_view> stat_fields(std::string_view stat) {
  const std::size_t end = stat.rfind(')');
  if (end == std::string_view::npos || end + 2 >= stat.size()) return {};
  return split(trim(stat.substr(end + 2)), ' ');
}

/// The number after `key` in lines such as "MemTotal:   123 kB" or "read_bytes: 5".
std::uint64_t value_of(std::string_view text, std::string_view key) {
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    const std::string_view rest = trim(line.substr(key.size() + 1));
    return number(rest.substr(0, rest.find(' ')));
  }
  return 0;
}

double ticks_per_s() {
  static const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return ticks;
}

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

/// The path of this process in a cgroup hierarchy: "0::/path" (v2) or "7:memory:/path" (v1).
std::optional<std::string> cgroup_path(std::string_view text, std::string_view controller) {
  for (std::string_view line : split(text, '\n')) {
    const auto parts = split(line, ':');
    if (parts.size() < 3) continue;
    const auto controllers = split(parts[1], ',');
    if (controller.empty()
            ? !parts[1].empty()
            : std::find(controllers.begin(), controllers.end(), controller) == controllers.end()) {
      continue;
    }
    return std::string(line.substr(parts[0].size() + parts[1].size() + 2));
  }
  return std::nullopt;
}

std::optional<CgroupMemory> read_memory(const Path& folder, const char* used_name, const char* limit_name) {
  const auto used = read_pseudo_file(folder / used_name);
  if (!used) return std::nullopt;
  CgroupMemory memory{number(*used), std::nullopt};
  if (const auto limit = read_pseudo_file(folder / limit_name)) {
    constexpr std::uint64_t kUnlimited = 1ull << 60;  // v1 represents "none" as a number near 2^63
    const std::uint64_t value = number(*limit);
    if (value > 0 && value < kUnlimited) memory.limit_bytes = value;
  }
  return memory;
}

/// In `root`/`path` or, within a container that sees only its own group, in `root`.
std::optional<CgroupMemory> read_memory_near(const Path& root, std::string_view path, const char* used_name,
                                             const char* limit_name) {
  const std::string_view relative = path.substr(std::min(path.find_first_not_of('/'), path.size()));
  if (auto memory = read_memory(root / Path(relative), used_name, limit_name)) return memory;
  return read_memory(root, used_name, limit_name);
}

}  // namespace

ProcessUsage& ProcessUsage::operator+=(const ProcessUsage& other) {
  cpu_s += other.cpu_s;
  rss_bytes += other.rss_bytes;
  read_bytes += other.read_bytes;
  write_bytes += other.write_bytes;
  asked_bytes += other.asked_bytes;
  return *this;
}

std::optional<ProcessUsage> read_process(const Path& proc, std::int64_t pid) {
  const Path folder = proc / std::to_string(pid);
  const auto stat = read_pseudo_file(folder / "stat");
  if (!stat) return std::nullopt;
  const auto fields = stat_fields(*stat);
  constexpr std::size_t kUserTime = 14 - 3;
  constexpr std::size_t kRssPages = 24 - 3;
  if (fields.size() <= kRssPages) return std::nullopt;
  ProcessUsage use;
  std::uint64_t ticks = 0;
  for (std::size_t i = kUserTime; i < kUserTime + 4; ++i) ticks += number(fields[i]);
  use.cpu_s = static_cast<double>(ticks) / ticks_per_s();
  use.rss_bytes = number(fields[kRssPages]) * page_bytes();
  if (const auto io = read_pseudo_file(folder / "io")) {
    use.read_bytes = value_of(*io, "read_bytes");
    use.write_bytes = value_of(*io, "write_bytes");
    use.asked_bytes = value_of(*io, "rchar");
  }
  return use;
}

std::optional<HostUsage> read_host(const Path& proc) {
  const auto stat = read_pseudo_file(proc / "stat");
  const auto memory = read_pseudo_file(proc / "meminfo");
  if (!stat || !memory || !stat->starts_with("cpu ")) return std::nullopt;
  HostUsage use;
  std::uint64_t total = 0;
  std::uint64_t idle = 0;
  // user nice system idle iowait irq softirq steal; guest times are included in user and nice.
  std::size_t column = 0;
  for (std::string_view field : split(trim(std::string_view(*stat).substr(4, stat->find('\n') - 4)), ' ')) {
    if (field.empty()) continue;
    if (column == 8) break;
    total += number(field);
    if (column == 3 || column == 4) idle += number(field);
    ++column;
  }
  use.total_s = static_cast<double>(total) / ticks_per_s();
  use.busy_s = static_cast<double>(total - idle) / ticks_per_s();
  use.memory_total_bytes = value_of(*memory, "MemTotal") * 1024;
  const std::uint64_t available = value_of(*memory, "MemAvailable") * 1024;
  use.memory_used_bytes = use.memory_total_bytes - std::min(available, use.memory_total_bytes);
  return use;
}

std::optional<CgroupMemory> read_cgroup_memory(const Path& proc, const Path& cgroup_root) {
  const auto groups = read_pseudo_file(proc / "self" / "cgroup");
  if (!groups) return std::nullopt;
  if (const auto path = cgroup_path(*groups, "memory")) {
    const Path root = cgroup_root / "memory";
    if (auto v1 = read_memory_near(root, *path, "memory.usage_in_bytes", "memory.limit_in_bytes")) return v1;
  }
  const auto path = cgroup_path(*groups, "");
  return path ? read_memory_near(cgroup_root, *path, "memory.current", "memory.max") : std::nullopt;
}

std::vector<std::pair<std::int64_t, std::int64_t>> read_parents(const Path& proc) {
  std::vector<std::pair<std::int64_t, std::int64_t>> parents;
  const auto names = list_directory(proc);
  if (!names) return parents;
  for (const std::string& name : *names) {
    std::int64_t pid = 0;
    if (name.empty() || name[0] < '0' || name[0] > '9' || !parse_number(name, &pid)) continue;
    const auto stat = read_pseudo_file(proc / name / "stat");
    if (!stat) continue;
    const auto fields = stat_fields(*stat);
    std::int64_t parent = 0;
    if (fields.size() > 1 && parse_number(fields[1], &parent)) parents.emplace_back(pid, parent);
  }
  return parents;
}

std::vector<std::int64_t> tree_of(std::int64_t root,
                                  const std::vector<std::pair<std::int64_t, std::int64_t>>& parents) {
  std::multimap<std::int64_t, std::int64_t> children;
  for (const auto& [pid, parent] : parents) {
    if (pid != parent) children.emplace(parent, pid);
  }
  std::vector<std::int64_t> tree = {root};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const auto [begin, end] = children.equal_range(tree[i]);
    for (auto child = begin; child != end; ++child) {
      if (std::find(tree.begin(), tree.end(), child->second) == tree.end()) tree.push_back(child->second);
    }
  }
  return tree;
}

}  // namespace stoker::observe
