#include "netcheck/storage.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <thread>
#include <unistd.h>

#include "base/file.h"
#include "stoker/text.h"

namespace stoker::netcheck {
namespace {

using namespace std::chrono_literals;

constexpr int kStorageTickMs = 50;
constexpr long kTmpfs = 0x01021994;

std::string local_folder(const Environment& environment) {
  for (const char* name : {"SLURM_TMPDIR", "TMPDIR"}) {
    const auto found = std::ranges::find_if(environment, [&](const auto& one) { return one.first == name; });
    if (found != environment.end() && !found->second.empty() && folder_exists(found->second))
      return found->second;
  }
  return "/tmp";
}

// Results so far; shared by the checking and the waiting thread.
struct Findings {
  std::mutex mutex;
  NodeView view;  // guarded by `mutex`; has the problems of the checked paths
  bool is_done = false;
};

void probe_storage(const std::vector<CheckedPath>& paths, const Environment& environment,
                   Findings& findings) {
  const std::string local = local_folder(environment);
  struct statfs about{};
  const bool is_known = ::statfs(local.c_str(), &about) == 0;
  {
    const std::scoped_lock lock(findings.mutex);
    findings.view.local = local;
    if (is_known) {
      findings.view.local_free = {static_cast<std::uint64_t>(about.f_bavail) *
                                  static_cast<std::uint64_t>(about.f_bsize)};
      findings.view.is_memory = about.f_type == kTmpfs;
    }
  }
  for (const CheckedPath& asked : paths) {
    std::string problem = check_path(asked);
    const std::scoped_lock lock(findings.mutex);
    findings.view.problems.push_back(std::move(problem));
  }
  const std::scoped_lock lock(findings.mutex);
  findings.is_done = true;
}

}  // namespace

std::string check_path(const CheckedPath& asked) {
  struct stat about{};
  if (::stat(asked.path.c_str(), &about) != 0)
    return errno == ENOENT || errno == ENOTDIR ? "is not there"
                                               : std::string(posix_error("", errno).message().substr(2));
  const bool is_folder = S_ISDIR(about.st_mode);
  const int wanted = asked.is_written ? W_OK | X_OK : is_folder ? R_OK | X_OK : R_OK;
  if (::access(asked.path.c_str(), wanted) != 0)
    return format("is not {} for you (user {})", asked.is_written ? "written to" : "read", ::getuid());
  constexpr std::string_view kOther = "differs from the one on the checking host: the storage is not shared";
  if (!asked.probe.empty() && !path_exists(Path(asked.path) / asked.probe)) return std::string(kOther);
  const bool is_same =
      asked.inode == 0 || about.st_ino == asked.inode || about.st_mtim.tv_sec == asked.changed;
  return asked.probe.empty() && !is_same ? std::string(kOther) : "";
}

NodeView check_storage(const std::vector<CheckedPath>& paths, const Environment& environment,
                       Deadline deadline, const std::function<bool()>& keep_going) {
  // Shared with the checking thread, which may hang forever in a filesystem. It is detached, and ends with
  // the process.
  const auto findings = std::make_shared<Findings>();
  std::thread([findings, paths, environment] { probe_storage(paths, environment, *findings); }).detach();
  const auto is_done = [&] {
    const std::scoped_lock lock(findings->mutex);
    return findings->is_done;
  };
  while (!is_done() && deadline.left() > Duration::zero() && keep_going()) ::poll(nullptr, 0, kStorageTickMs);
  const std::scoped_lock lock(findings->mutex);
  NodeView view = findings->view;
  const bool has_hung = view.problems.size() < paths.size();
  if (has_hung) view.problems.emplace_back("does not answer: its filesystem hangs");
  while (view.problems.size() < paths.size()) view.problems.emplace_back("");
  return view;
}

}  // namespace stoker::netcheck
