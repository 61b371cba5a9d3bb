#include "observe/node/proc.h"

#include <algorithm>
#include <map>
#include <unistd.h>

#include "base/file.h"
#include "observe/node/counter.h"

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

double ticks_per_s() {
  static const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return ticks;
}

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

ProcessUsage& ProcessUsage::operator+=(const ProcessUsage& other) {
  cpu_s += other.cpu_s;
  rss_bytes += other.rss_bytes;
  read_bytes += other.read_bytes;
  write_bytes += other.write_bytes;
  asked_bytes += other.asked_bytes;
  read_calls += other.read_calls;
  write_calls += other.write_calls;
  has_io = has_io || other.has_io;
  return *this;
}

std::optional<ProcessUsage> read_process(const Path& proc, std::int64_t pid) {
  const Path folder = proc / std::to_string(pid);
  const auto stat = read_pseudo_file(folder / "stat");
  if (!stat) return std::nullopt;
  const auto fields = stat_fields(*stat);
  constexpr std::size_t kUserTime = 14 - 3;
  constexpr std::size_t kStart = 22 - 3;
  constexpr std::size_t kRssPages = 24 - 3;
  if (fields.size() <= kRssPages) return std::nullopt;
  ProcessUsage use;
  std::uint64_t ticks = 0;
  for (std::size_t i = kUserTime; i < kUserTime + 4; ++i) ticks += number(fields[i]);
  use.cpu_s = static_cast<double>(ticks) / ticks_per_s();
  use.started_s = static_cast<double>(number(fields[kStart])) / ticks_per_s();
  use.rss_bytes = number(fields[kRssPages]) * page_bytes();
  const auto io = read_pseudo_file(folder / "io");
  const Counter asked = io.ok() ? value_after(*io, "rchar") : std::nullopt;
  if (!asked) return use;
  use.has_io = true;
  use.asked_bytes = *asked;
  use.read_bytes = value_after(*io, "read_bytes").value_or(0);
  use.write_bytes = value_after(*io, "write_bytes").value_or(0);
  use.read_calls = value_after(*io, "syscr").value_or(0);
  use.write_calls = value_after(*io, "syscw").value_or(0);
  return use;
}

std::optional<HostMemory> read_host_memory(const Path& proc) {
  const auto text = read_pseudo_file(proc / "meminfo");
  const Counter total = text.ok() ? value_after(*text, "MemTotal") : std::nullopt;
  if (!total) return std::nullopt;
  constexpr std::uint64_t kKb = 1024;
  const std::uint64_t available = value_after(*text, "MemAvailable").value_or(0);
  return HostMemory{*total * kKb, (*total - std::min(available, *total)) * kKb};
}

double read_uptime(const Path& proc) {
  const auto text = read_pseudo_file(proc / "uptime");
  double seconds = 0;
  if (!text || !parse_number(text->substr(0, text->find(' ')), &seconds)) return 0;
  return seconds;
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
