#include "rank/hello/storage.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <thread>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "rank/hello/ladder.h"
#include "rank/hello/said.h"
#include "rank/hello/wire.h"

namespace stoker::rank::hello {
namespace {

using namespace std::chrono_literals;
using net::Message;

constexpr int kStorageTickMs = 50;
constexpr long kTmpfs = 0x01021994;
constexpr Duration kLook = 10s;
constexpr Duration kStorageSlack = 20s;

std::string local_folder(const Environment& environment) {
  for (const char* name : {"SLURM_TMPDIR", "TMPDIR"}) {
    const auto found = std::ranges::find_if(environment, [&](const auto& one) { return one.first == name; });
    if (found != environment.end() && !found->second.empty() && folder_exists(found->second))
      return found->second;
  }
  return "/tmp";
}

// What is known so far; shared by the one who looks and the one who waits for him.
struct Findings {
  std::mutex mutex;
  NodeView view;  // problems of the paths that were looked at, by `mutex`
  bool is_done = false;
};

void look(const std::vector<AskedPath>& paths, const Environment& environment, Findings& findings) {
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
  for (const AskedPath& asked : paths) {
    std::string problem = look_at_path(asked);
    const std::scoped_lock lock(findings.mutex);
    findings.view.problems.push_back(std::move(problem));
  }
  const std::scoped_lock lock(findings.mutex);
  findings.is_done = true;
}

}  // namespace

std::string look_at_path(const AskedPath& asked) {
  struct stat about{};
  if (::stat(asked.path.c_str(), &about) != 0)
    return errno == ENOENT || errno == ENOTDIR ? "is not there"
                                               : std::string(posix_error("", errno).message().substr(2));
  const bool is_folder = S_ISDIR(about.st_mode);
  const int wanted = asked.is_written ? W_OK | X_OK : is_folder ? R_OK | X_OK : R_OK;
  if (::access(asked.path.c_str(), wanted) != 0)
    return format("may not be {} by you (user {})", asked.is_written ? "written to" : "read", ::getuid());
  constexpr std::string_view kOther =
      "is another one than where the job was checked: the storage is not shared";
  if (!asked.probe.empty() && !path_exists(Path(asked.path) / asked.probe)) return std::string(kOther);
  const bool is_same =
      asked.inode == 0 || about.st_ino == asked.inode || about.st_mtim.tv_sec == asked.changed;
  return asked.probe.empty() && !is_same ? std::string(kOther) : "";
}

NodeView look_at_storage(const std::vector<AskedPath>& paths, const Environment& environment,
                         Deadline deadline, const std::function<bool()>& keep_going) {
  // Shared by this thread and the one that looks, which may never come back from a filesystem that hangs: it
  // is let go then, and the process's end ends it.
  const auto findings = std::make_shared<Findings>();
  std::thread([findings, paths, environment] { look(paths, environment, *findings); }).detach();
  const auto is_done = [&] {
    const std::scoped_lock lock(findings->mutex);
    return findings->is_done;
  };
  while (!is_done() && deadline.left() > Duration::zero() && keep_going()) ::poll(nullptr, 0, kStorageTickMs);
  const std::scoped_lock lock(findings->mutex);
  NodeView view = findings->view;
  const bool has_hung = view.problems.size() < paths.size();
  if (has_hung) view.problems.emplace_back("gives no answer: its filesystem hangs");
  while (view.problems.size() < paths.size()) view.problems.emplace_back("");
  return view;
}

// Every rank is asked: each node has its own eyes, and one that is alone on its node is enough for it.
Status Ladder::storage() {
  OK_OR_RETURN(sent, parse_paths(to_lines(options_.paths)));
  report_.paths = std::move(sent);
  report_.local_needed = options_.local_needed;
  Questions questions;
  for (const Rank rank : present()) {
    Message question{"storage", {}};
    questions[rank] = question.with("paths", to_lines(report_.paths)).with("limit_s", Seconds(kLook).count());
  }
  const WallTime asked = RealClock().wall();
  RETURN_IF_ERROR(
      ask("storage", questions, kLook + kStorageSlack, [&](Rank rank, const Message& message) -> Status {
        std::int64_t wall_ns = 0;
        OK_OR_RETURN(view, parse_view(message, &wall_ns));
        // Its clock was read some time between the question and now.
        const Duration taken = RealClock().wall() - asked;
        const Duration middle = asked.time_since_epoch() + taken / 2;
        view.clock_s = Seconds(Duration(wall_ns) - middle).count();
        view.clock_error_s = Seconds(taken / 2).count();
        report_.views[rank] = std::move(view);
        return {};
      }));
  std::size_t problems = 0;
  for (const auto& [rank, view] : report_.views)
    problems += static_cast<std::size_t>(
        std::ranges::count_if(view.problems, [](const auto& p) { return !p.empty(); }));
  const std::size_t paths = report_.paths.size();
  const std::string ranks = rank_count(report_.views.size(), words_);
  pass("storage", problems == 0 && errors_.empty(),
       problems == 1  ? words_.say("1 path not as where the job was checked")
       : problems > 1 ? words_.say("{} paths not as where the job was checked", problems)
       : paths == 1   ? words_.say("1 path the same on {}", ranks)
                      : words_.say("{} paths the same on {}", paths, ranks));
  return {};
}

}  // namespace stoker::rank::hello
