// Removes a lab in an order that lets a second `down` finish after a crash at any point:
//   1. the helper processes named in lab.json: the starter and the guardian
//   2. all processes of the lab, with SIGKILL, repeatedly: daemons, steps, jobs, namespace holders
//   3. this host's mounts below its folder
//   4. links (they carry the lab's mark), then network namespaces (known by their names)
//   5. the folder, lab.json with it, renamed first so that no half of it is taken for a lab
// After step 2 no process creates new processes, files or mounts.
#include "lab/down.h"

#include <algorithm>
#include <cerrno>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "lab/launch.h"
#include "lab/make/network.h"
#include "lab/processes.h"

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

int kill_helpers(const Path& folder) {
  const auto lab = open(folder.filename().string());
  if (!lab) return 0;
  int ended = 0;
  for (const pid_t pid : {lab->starter, lab->guardian}) {
    if (pid > 0 && pid != ::getpid() && is_running(pid) && is_stoker(pid) && kill_process(pid)) ++ended;
  }
  return ended;
}

Result<int> kill_lab_processes(const Path& folder) {
  const Deadline deadline = Deadline::after(kEndTime);
  std::vector<pid_t> killed;
  for (;;) {
    const std::vector<LabProcess> left = find_lab_processes(folder);
    if (left.empty()) return static_cast<int>(killed.size());
    for (const LabProcess& process : left) {
      if (std::ranges::find(killed, process.pid) == killed.end()) killed.push_back(process.pid);
      kill_process(process.pid);
    }
    if (deadline.passed()) {
      return timeout("{}: process {} ({}) does not exit", folder.filename(), left[0].pid,
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
  // check_name() rejects such a name, so remains after a crash are never mistaken for a lab.
  const Path gone = folder.parent_path() / format(".{}.{}", folder.filename(), random_name());
  STOKER_RETURN_IF_ERROR(rename_path(folder, gone));
  STOKER_RETURN_IF_ERROR(remove_tree(gone));
  return true;
}

void remove_leftovers(const Path& folder) {
  const std::string prefix = format(".{}.", folder.filename());
  if (const auto entries = list_directory(folder.parent_path())) {
    for (const std::string& entry : *entries) {
      if (entry.starts_with(prefix)) (void)remove_tree(folder.parent_path() / entry);
    }
  }
  ::rmdir(folder.parent_path().c_str());  // if it was the last lab
}

// Removes everything except the folder.
Status remove_resources(const Path& folder, Removed& removed) {
  STOKER_ASSIGN_OR_RETURN(processes, kill_lab_processes(folder));
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

Status remove_orphan_resources(std::string_view name, Removed& removed) {
  if (::geteuid() != 0 || orphans_named(name).empty()) return {};
  // While the lock is held no lab creates links, so links without a folder belong to an orphan.
  STOKER_ASSIGN_OR_RETURN(lock, NetworkLock::acquire(Deadline::after(kLockTime)));
  for (const Path& folder : orphans_named(name)) STOKER_RETURN_IF_ERROR(remove_resources(folder, removed));
  lock.release();
  return {};
}

}  // namespace

Result<Removed> remove_orphans(std::string_view name) {
  Removed removed;
  STOKER_RETURN_IF_ERROR(remove_orphan_resources(name, removed));
  return removed;
}

Result<Removed> down(std::string_view name) {
  STOKER_RETURN_IF_ERROR(check_name(name));
  const Path folder = labs_folder() / name;
  Removed removed;
  STOKER_RETURN_IF_ERROR(remove_orphan_resources(name, removed));
  removed.processes += kill_helpers(folder);
  STOKER_RETURN_IF_ERROR(remove_resources(folder, removed));
  STOKER_ASSIGN_OR_RETURN(is_gone, remove_folder(folder));
  removed.folder = is_gone;
  remove_leftovers(folder);
  return removed;
}

}  // namespace stoker::lab
