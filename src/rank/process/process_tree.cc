#include "rank/process/process_tree.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

namespace stoker::rank {
namespace {

bool is_pid(std::string_view name, pid_t* pid) {
  std::int64_t number = 0;
  if (!parse_number(name, &number) || number <= 0) return false;
  *pid = static_cast<pid_t>(number);
  return true;
}

// Fallback for kernels without lists of children (CONFIG_PROC_CHILDREN): all parents, from one pass over
// /proc.
std::multimap<pid_t, pid_t> all_parents(const Path& proc) {
  std::multimap<pid_t, pid_t> by_parent;
  const auto names = list_directory(proc);
  if (!names.ok()) return by_parent;
  for (const std::string& name : *names) {
    pid_t pid = 0;
    if (!is_pid(name, &pid)) continue;
    if (const auto facts = process_facts(pid, proc); facts.ok()) by_parent.emplace(facts->parent, pid);
  }
  return by_parent;
}

std::vector<pid_t> children_of(pid_t parent, const Path& proc) {
  std::vector<pid_t> children;
  const Path tasks = proc / std::to_string(parent) / "task";
  const auto threads = list_directory(tasks);
  if (!threads.ok()) return children;
  for (const std::string& thread : *threads) {
    const auto list = read_pseudo_file(tasks / thread / "children");
    if (!list.ok()) continue;
    for (std::string_view word : split(*list, ' ')) {
      pid_t pid = 0;
      if (is_pid(word, &pid)) children.push_back(pid);
    }
  }
  return children;
}

std::uint64_t value_after(std::string_view text, std::string_view key) {
  for (std::string_view line : split(text, '\n')) {
    std::uint64_t value = 0;
    if (line.starts_with(key) && parse_number(trim(line.substr(key.size())), &value)) return value;
  }
  return 0;
}

}  // namespace

Result<ProcessFacts> parse_stat(std::string_view line) {
  // The name in parentheses may contain blanks and parentheses: the last one closes it.
  const std::size_t open = line.find('(');
  const std::size_t close = line.rfind(')');
  ProcessFacts facts;
  if (open == std::string_view::npos || close == std::string_view::npos || close < open ||
      close + 2 > line.size() || !is_pid(trim(line.substr(0, open)), &facts.pid)) {
    return corrupt("stat: '{}' is not a line of /proc/<pid>/stat", printable(line.substr(0, 100)));
  }
  facts.name = line.substr(open + 1, close - open - 1);
  const std::vector<std::string_view> fields = split(trim(line.substr(close + 1)), ' ');
  // Counted from field 3 (state): parent 4, flags 9, utime 14, stime 15, starttime 22.
  constexpr std::uint64_t kExiting = 4;  // PF_EXITING of linux/sched.h
  std::int64_t parent = 0;
  std::uint64_t flags = 0;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  if (fields.size() < 20 || fields[0].size() != 1 || !parse_number(fields[1], &parent) ||
      !parse_number(fields[6], &flags) || !parse_number(fields[11], &user) ||
      !parse_number(fields[12], &system) || !parse_number(fields[19], &facts.start)) {
    return corrupt("stat: process {} has non-numeric fields", facts.pid);
  }
  facts.state = fields[0][0];
  facts.parent = static_cast<pid_t>(parent);
  facts.is_exiting = (flags & kExiting) != 0;
  facts.cpu_s = static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return facts;
}

Result<ProcessFacts> process_facts(pid_t pid, const Path& proc) {
  STOKER_ASSIGN_OR_RETURN(line, read_pseudo_file(proc / std::to_string(pid) / "stat"));
  return parse_stat(line);
}

std::vector<ProcessFacts> descendants(pid_t root, const Path& proc) {
  const Path own_list = proc / std::to_string(root) / "task" / std::to_string(root) / "children";
  const bool has_lists = path_exists(own_list);
  const auto parents = has_lists ? std::multimap<pid_t, pid_t>() : all_parents(proc);
  std::vector<ProcessFacts> found;
  std::vector<pid_t> open = {root};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    std::vector<pid_t> children = has_lists ? children_of(parent, proc) : std::vector<pid_t>();
    for (auto [each, end] = parents.equal_range(parent); each != end; ++each)
      children.push_back(each->second);
    for (pid_t child : children) {
      auto facts = process_facts(child, proc);
      if (!facts.ok()) continue;  // gone meanwhile
      found.push_back(std::move(*facts));
      open.push_back(child);
    }
  }
  return found;
}

void signal_process(const ProcessFacts& process, int signal) {
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0)));
  if (!pidfd) return;
  // The descriptor pins the process, so /proc now describes the process that the signal reaches.
  const auto now = process_facts(process.pid);
  if (!now.ok() || now->start != process.start) return;
  ::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
  if (now->state == 'T' && signal != SIGKILL)
    ::syscall(SYS_pidfd_send_signal, pidfd.get(), SIGCONT, nullptr, 0);
}

bool handles_signal(pid_t pid, int signal, const Path& proc) {
  const auto text = read_pseudo_file(proc / std::to_string(pid) / "status");
  if (!text.ok()) return false;
  for (std::string_view line : split(*text, '\n')) {
    if (!line.starts_with("SigCgt:")) continue;
    const std::string mask(trim(line.substr(7)));
    return (std::strtoull(mask.c_str(), nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return false;
}

Status become_subreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return posix_error("subreaper", errno);
  return {};
}

bool reap_orphans(const std::vector<pid_t>& kept) {
  for (;;) {
    siginfo_t info{};
    // WNOWAIT: a child with an owner must remain waitable for it.
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return errno != ECHILD;
    if (info.si_pid == 0 || std::find(kept.begin(), kept.end(), info.si_pid) != kept.end()) return true;
    ::waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

MemoryKills memory_kills(const Path& proc, const Path& cgroups) {
  const auto groups = read_pseudo_file(proc / "self/cgroup");
  if (!groups.ok()) return {};
  for (std::string_view line : split(*groups, '\n')) {
    if (!line.starts_with("0::/")) continue;  // cgroup v2
    const Path folder = cgroups / Path(line.substr(4));
    MemoryKills kills;
    if (const auto events = read_pseudo_file(folder / "memory.events"); events.ok()) {
      kills.count = value_after(*events, "oom_kill ");
    }
    if (const auto limit = read_pseudo_file(folder / "memory.max"); limit.ok()) {
      (void)parse_number(trim(*limit), &kills.limit_bytes);
    }
    return kills;
  }
  return {};
}

}  // namespace stoker::rank
