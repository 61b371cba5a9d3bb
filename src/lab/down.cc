// Takes a lab away in an order in which a crash at any point leaves something that a second `down` finds:
//   1. the processes that lab.json names beside the daemons: whoever is still making it, its guardian
//   2. all processes of the lab, by force, until none is found: daemons, steps, jobs, holders of namespaces
//   3. mounts of this host below its folder
//   4. links (they carry the lab's mark), then network namespaces (known by their names)
//   5. the folder, lab.json with it, renamed first so that no half of it is taken for a lab
// After 2 nothing makes new processes, files or mounts.
#include <algorithm>
#include <cerrno>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "lab/make/network.h"
#include "lab/members.h"
#include "lab/up.h"

namespace stoker::lab {
namespace {

constexpr auto kEndTime = std::chrono::seconds(10);
constexpr auto kLockTime = std::chrono::seconds(60);

bool kill_process(pid_t pid) {
  const Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return fd && ::syscall(SYS_pidfd_send_signal, fd.get(), SIGKILL, nullptr, 0) == 0;
}

bool is_stoker(pid_t pid) {
  const auto program = read_pseudo_file(format("/proc/{}/comm", pid));
  return program && program->starts_with("stoker");
}

int end_helpers(const Path& folder) {
  const auto lab = open(folder.filename().string());
  if (!lab) return 0;
  int ended = 0;
  for (const pid_t pid : {lab->starter, lab->guardian}) {
    if (pid > 0 && pid != ::getpid() && is_running(pid) && is_stoker(pid) && kill_process(pid)) ++ended;
  }
  return ended;
}

Result<int> end_members(const Path& folder) {
  const Deadline deadline = Deadline::after(kEndTime);
  std::vector<pid_t> killed;
  for (;;) {
    const std::vector<Member> left = find_members(folder);
    if (left.empty()) return static_cast<int>(killed.size());
    for (const Member& member : left) {
      if (std::ranges::find(killed, member.pid) == killed.end()) killed.push_back(member.pid);
      kill_process(member.pid);
    }
    if (deadline.passed()) {
      return timeout("{}: process {} ({}) does not end", folder.filename(), left[0].pid,
                     printable(left[0].program));
    }
    RealClock().sleep(std::chrono::milliseconds(5));
  }
}

// The mount points at or below a folder, innermost first.
std::vector<std::string> mounts_below(const Path& folder) {
  std::vector<std::string> points;
  const auto table = read_pseudo_file("/proc/self/mountinfo");
  if (!table) return points;
  for (const std::string_view line : split(*table, '\n')) {
    const auto fields = split(line, ' ');
    if (fields.size() < 5) continue;
    const std::string point(fields[4]);
    if (point == folder.string() || point.starts_with(folder.string() + "/")) points.push_back(point);
  }
  std::ranges::reverse(points);
  return points;
}

Result<bool> remove_folder(const Path& folder) {
  if (!folder_exists(folder)) return false;
  // check_name() refuses such a name: whatever is left of it after a crash is never taken for a lab.
  const Path gone = folder.parent_path() / format(".{}.{}", folder.filename(), random_name());
  RETURN_IF_ERROR(rename_path(folder, gone));
  RETURN_IF_ERROR(remove_tree(gone));
  return true;
}

void remove_remains(const Path& folder) {
  const std::string prefix = format(".{}.", folder.filename());
  if (const auto entries = list_directory(folder.parent_path())) {
    for (const std::string& entry : *entries) {
      if (entry.starts_with(prefix)) (void)remove_tree(folder.parent_path() / entry);
    }
  }
  ::rmdir(folder.parent_path().c_str());  // when it was the last lab
}

// All but the folder.
Status take_away(const Path& folder, Removed& removed) {
  OK_OR_RETURN(processes, end_members(folder));
  removed.processes += processes;
  for (const std::string& point : mounts_below(folder)) {
    if (::umount2(point.c_str(), MNT_DETACH) == 0) ++removed.mounts;
  }
  const std::vector<std::string> namespaces =
      ::geteuid() == 0 ? namespaces_of(folder) : std::vector<std::string>();
  removed.links += remove_links(links_of(folder));
  removed.namespaces += remove_namespaces(namespaces);
  return {};
}

Status take_orphans_away(std::string_view name, Removed& removed) {
  if (::geteuid() != 0 || orphans_named(name).empty()) return {};
  // Under the lock no lab makes its links, so that whatever has links has its folder, too, or is an orphan.
  OK_OR_RETURN(lock, NetworkLock::acquire(Deadline::after(kLockTime)));
  for (const Path& folder : orphans_named(name)) RETURN_IF_ERROR(take_away(folder, removed));
  lock.release();
  return {};
}

}  // namespace

Result<Removed> remove_orphans(std::string_view name) {
  Removed removed;
  RETURN_IF_ERROR(take_orphans_away(name, removed));
  return removed;
}

Result<Removed> down(std::string_view name) {
  RETURN_IF_ERROR(check_name(name));
  const Path folder = labs_folder() / name;
  Removed removed;
  RETURN_IF_ERROR(take_orphans_away(name, removed));
  removed.processes += end_helpers(folder);
  RETURN_IF_ERROR(take_away(folder, removed));
  OK_OR_RETURN(is_gone, remove_folder(folder));
  removed.folder = is_gone;
  remove_remains(folder);
  return removed;
}

}  // namespace stoker::lab
