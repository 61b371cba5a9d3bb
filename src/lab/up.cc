#include "lab/up.h"

#include <algorithm>
#include <cerrno>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "lab/daemons.h"
#include "lab/down.h"
#include "lab/launch.h"
#include "lab/make/database.h"
#include "lab/make/files.h"
#include "lab/make/guardian.h"
#include "lab/make/holder.h"
#include "lab/make/network.h"
#include "lab/make/plan.h"
#include "lab/make/tools.h"

namespace stoker::lab {
namespace {

constexpr auto kStartTime = std::chrono::seconds(120);  // generous, for loaded machines
constexpr ByteCount kMinFreeSpace = 32_MiB;
constexpr ByteCount kMinFreeSpaceWithDatabase = 160_MiB;
// A step's socket is "<folder>/nodes/n64/spool/n64_4294967295.4294967295"; Linux allows 107 characters.
constexpr std::size_t kLongestFolder = 60;

Status check_privileges(const Options& options) {
  if (options.mode == LabMode::processes) return {};
  if (::geteuid() != 0) {
    return invalid("lab: namespaces need root (--mode namespaces)").cure("stoker lab up --mode processes");
  }
  return check_namespaces();
}

// Blanks and '#' end a value in slurm.conf, '%' and '[' are special there, ':' separates entries of
// MODULEPATH.
bool is_plain(std::string_view path) {
  return std::ranges::all_of(path, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+@").find(c) != std::string_view::npos;
  });
}

// Creates or checks the folder of this user's labs, which must be writable only by this user.
Status claim_labs_folder(const Path& folder) {
  if (folder.string().size() + 12 > kLongestFolder) {
    return invalid(
        "lab: {}: path longer than {} characters, which the names of Slurm's sockets do not allow "
        "(STOKER_LAB_DIR)",
        printable(folder.string()), kLongestFolder - 12);
  }
  if (!is_plain(folder.string())) {
    return invalid(
        "lab: {}: Slurm's files take only letters, digits and . _ - + @ in a path (STOKER_LAB_DIR)",
        printable(folder.string()));
  }
  STOKER_RETURN_IF_ERROR(make_directories(folder));
  struct stat status{};
  if (::lstat(folder.c_str(), &status) != 0) return posix_error(folder.string(), errno);
  if (S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() && (status.st_mode & 022) == 0) return {};
  return invalid("lab: {}: must be your folder, writable only by you", printable(folder.string()))
      .cure("STOKER_LAB_DIR=/path/to/another stoker lab up");
}

Status claim_folder(const Path& folder) {
  Status made = make_directory(folder);
  if (made.ok()) return {};
  if (made.code() != Code::exists) return made;
  return exists("{}: a lab with this name exists ({})", folder.filename(), folder)
      .cure("stoker lab down --name {0}      (or another: stoker lab up --name other)", folder.filename());
}

Status check_free_space(const Options& options, const Path& folder) {
  const ByteCount needed = options.has_accounting ? kMinFreeSpaceWithDatabase : kMinFreeSpace;
  const auto free = free_space(folder);
  if (!free || *free >= needed) return {};
  return no_space("{}: {} free in {}, needs {}", options.name, rounded(*free), folder.parent_path(),
                  rounded(needed))
      .cure("STOKER_LAB_DIR=/path/with/space stoker lab up --name {}", options.name);
}

// State of a lab's startup.
struct LabStartup {
  Lab& lab;
  const HostInfo& host_info;
  Deadline deadline;
  const Progress& progress;

  Status check_stop() const {
    return progress.stop_requested() ? cancelled("{}: interrupted; the lab was removed", lab.name) : Status();
  }
};

Status make_namespaces(Lab& lab) {
  STOKER_RETURN_IF_ERROR(make_network(lab));
  for (LabNode& node : lab.nodes) STOKER_RETURN_IF_ERROR(start_holder(lab, node));
  return start_login_holder(lab);
}

Status start_munged(LabStartup& startup) {
  Lab& lab = startup.lab;
  Daemon daemon;
  daemon.name = "munged";
  daemon.argv = {"munged",
                 "--foreground",
                 "--force",
                 "--num-threads=2",
                 format("--key-file={}/etc/munge.key", lab.folder),
                 format("--socket={}", munge_socket(lab)),
                 format("--pid-file={}/run/munged.pid", lab.folder),
                 format("--seed-file={}/run/munged.seed", lab.folder),
                 format("--log-file={}/log/munged.log", lab.folder)};
  STOKER_ASSIGN_OR_RETURN(pid, launch(lab, daemon));
  lab.munged = pid;
  return wait_until(lab, {"munged", pid}, startup.deadline, [&] { return path_exists(munge_socket(lab)); });
}

Status wait_for_nodes(const LabStartup& startup) {
  const Lab& lab = startup.lab;
  for (;;) {
    STOKER_RETURN_IF_ERROR(startup.check_stop());
    const auto states = run_program(
        client_command(lab, {"sinfo", "--noheader", "--partition=cpu", "--Node", "--format=%N %t"}),
        Deadline::after(std::chrono::seconds(10)));
    std::size_t idle = 0;
    if (states && states->exit.ok()) {
      for (const std::string_view line : split(states->out, '\n')) idle += line.ends_with(" idle") ? 1 : 0;
    }
    if (idle == lab.nodes.size()) return {};
    if (!is_running(lab.controller)) return ended_early(lab, {"slurmctld", lab.controller});
    for (const LabNode& node : lab.nodes) {
      if (!is_running(node.slurmd)) return ended_early(lab, {"slurmd-" + node.name, node.slurmd});
    }
    if (startup.deadline.passed()) {
      return timeout("{}: {} of {} nodes are idle after {}", lab.name, idle, lab.nodes.size(),
                     rounded_duration(kStartTime));
    }
    RealClock().sleep(std::chrono::milliseconds(20));
  }
}

// "22.05.8" of "slurm-wlm 22.05.8".
Result<std::string> slurm_version(const Lab& lab) {
  Command command;
  command.argv = {find_tool("slurmd"), "-V"};
  STOKER_ASSIGN_OR_RETURN(output, run_tool(lab.name, command, Deadline::after(std::chrono::seconds(20))));
  const std::string_view text = trim(output);
  return std::string(text.substr(text.rfind(' ') + 1));
}

Status start_all(LabStartup& startup, const Options& options) {
  Lab& lab = startup.lab;
  STOKER_RETURN_IF_ERROR(start_munged(startup));
  if (options.has_accounting) {
    STOKER_RETURN_IF_ERROR(start_database(lab, startup.host_info, startup.deadline));
    STOKER_RETURN_IF_ERROR(startup.check_stop());
    STOKER_RETURN_IF_ERROR(start_accounting(lab, startup.host_info, startup.deadline));
  }
  STOKER_RETURN_IF_ERROR(startup.check_stop());
  STOKER_RETURN_IF_ERROR(start_controller(lab));
  STOKER_RETURN_IF_ERROR(wait_for_controller(lab, startup.deadline));
  for (LabNode& node : lab.nodes) STOKER_RETURN_IF_ERROR(start_slurmd(lab, node));
  STOKER_RETURN_IF_ERROR(save(lab));
  return wait_for_nodes(startup);
}

// Creates a lab in its claimed folder.
Result<Lab> make(const Options& options, const Path& folder, const Progress& progress) {
  STOKER_RETURN_IF_ERROR(check_free_space(options, folder));
  STOKER_ASSIGN_OR_RETURN(host_info, read_host_info());
  Lab guarded;
  guarded.name = options.name;
  guarded.folder = folder;
  guarded.owner = options.owner;
  if (options.owner != 0) STOKER_RETURN_IF_ERROR(start_guardian(guarded));
  STOKER_ASSIGN_OR_RETURN(network_lock, NetworkLock::acquire(Deadline::after(kStartTime)));
  STOKER_ASSIGN_OR_RETURN(plan, make_plan(options, folder));
  Lab& lab = plan.lab;
  lab.guardian = guarded.guardian;
  lab.starter = ::getpid();
  lab.started = unix_seconds(RealClock().wall());
  STOKER_ASSIGN_OR_RETURN(version, slurm_version(lab));
  lab.slurm_version = version;
  STOKER_RETURN_IF_ERROR(save(lab));
  STOKER_RETURN_IF_ERROR(write_files(lab, host_info));
  if (options.mode == LabMode::namespaces) {
    STOKER_RETURN_IF_ERROR(make_namespaces(lab));
    STOKER_RETURN_IF_ERROR(save(lab));
  }
  network_lock.release();
  LabStartup startup{lab, host_info, Deadline::after(kStartTime), progress};
  STOKER_RETURN_IF_ERROR(start_all(startup, options));
  lab.phase = LabPhase::up;
  lab.starter = 0;
  STOKER_RETURN_IF_ERROR(save(lab));
  return std::move(lab);
}

}  // namespace

Result<Lab> up(const Options& options, const Progress& progress) {
  STOKER_RETURN_IF_ERROR(check_options(options));
  STOKER_RETURN_IF_ERROR(check_packages(options));
  STOKER_RETURN_IF_ERROR(check_privileges(options));
  // Daemons must not inherit files of the caller's shell, like a lock or a pipe.
  set_close_on_exec_from(3);
  STOKER_RETURN_IF_ERROR(claim_labs_folder(labs_folder()));
  const Path folder = labs_folder() / options.name;
  if (options.mode == LabMode::namespaces && !folder_exists(folder)) {
    if (auto removed = remove_orphans(options.name); !removed) return std::move(removed).error();
    STOKER_RETURN_IF_ERROR(check_names_free(folder));
  }
  STOKER_RETURN_IF_ERROR(claim_folder(folder));
  auto lab = make(options, folder, progress);
  if (!lab) {
    if (auto removed = down(options.name); !removed)
      return std::move(removed).error().with_context(lab.error().message());
  }
  return lab;
}

}  // namespace stoker::lab
