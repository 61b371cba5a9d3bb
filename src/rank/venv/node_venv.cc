// Protocol of creating a virtual environment in a location P of the node. If other users can write to P, it
// is a private subfolder, because a planted environment would run foreign code:
//   1. flock P/stoker-venv-<key>.lock: one process of the node creates it, its peers wait
//   2. refuse P/stoker-venv-<key> unless only this user can write to it; remove an incomplete one
//   3. python3 -m venv, pip install
//   4. create the file `complete` inside                      <- it exists from here on
// The key is a hash of the requirements' text, the wheelhouse and the Python. The lock is on the local disk,
// where flock works; the kernel releases the lock of a killed process.
#include "rank/venv/node_venv.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/process.h"
#include "base/user.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLockPollInterval = 50ms;
constexpr std::string_view kComplete = "complete";

Result<Captured> run(const VenvRequest& request, std::vector<std::string> argv, Deadline deadline) {
  Command command;
  command.argv = std::move(argv);
  command.environment = request.environment;
  return run_program(command, deadline);
}

// Version and prefix of python3: a different Python needs a different environment.
Result<std::string> python_of(const VenvRequest& request, Deadline deadline) {
  auto output = run(request, {"python3", "-c", "import sys; print(sys.version, sys.base_prefix)"}, deadline);
  if (!output.ok()) return std::move(output).error().with_context("environment.venv");
  if (!output->exit.ok()) return invalid("environment.venv: python3 ended with {}", to_text(output->exit));
  return std::move(output->out);
}

// The last error of pip.
std::string pip_error(const Captured& done) {
  std::string last;
  for (std::string_view line : split(done.err, '\n')) {
    line = trim(line);
    if (line.starts_with("ERROR: ")) last = printable(line.substr(7, 300));
  }
  return last.empty() ? to_text(done.exit) : last;
}

Result<Fd> lock(const Path& path, Deadline deadline) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return posix_error(path.string(), errno);
  RealClock clock;
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return posix_error(path.string(), errno);
    if (deadline.passed())
      return timeout("environment.venv: another process is still creating {}", path.stem());
    clock.sleep(kLockPollInterval);
  }
  return file;
}

Status install(const VenvRequest& request, const Path& folder, Deadline deadline) {
  STOKER_RETURN_IF_ERROR(remove_tree(folder));
  // python3's own mkdir could make it writable for other users, depending on the umask.
  if (::mkdir(folder.c_str(), 0700) != 0) return posix_error(folder.string(), errno);
  auto made = run(request, {"python3", "-m", "venv", folder.string()}, deadline);
  if (!made.ok()) return std::move(made).error().with_context("environment.venv");
  // Some distributions omit venv's dependency on pip; sites then provide virtualenv.
  if (!made->exit.ok()) made = run(request, {"virtualenv", "--no-download", folder.string()}, deadline);
  if (!made.ok() || !made->exit.ok()) {
    return invalid("environment.venv: neither python3 -m venv nor virtualenv can create one here")
        .cure("install python3-venv, or environment: {{modules: [python]}}");
  }
  std::vector<std::string> pip = {(folder / "bin/python").string(), "-m",     "pip", "install", "--no-input",
                                  "--disable-pip-version-check",    "--quiet"};
  if (!request.wheelhouse.empty())
    pip.insert(pip.end(), {"--no-index", "--find-links", request.wheelhouse.string()});
  pip.insert(pip.end(), {"--requirement", request.requirements.string()});
  const auto installed = run(request, std::move(pip), deadline);
  if (!installed.ok()) return installed.status().with_context("environment.venv");
  if (!installed->exit.ok())
    return invalid("environment.venv: {}: {}", printable(request.requirements.string()),
                   pip_error(*installed));
  return write_file(folder / kComplete, "");
}

// Another user must not have created this folder or be able to write to it.
Status check_owner(const Path& folder) {
  struct stat info{};
  if (::lstat(folder.c_str(), &info) != 0) return posix_error(folder.string(), errno);
  if (S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0)
    return {};
  return exists("{}: belongs to another user, or other users can write to it", folder);
}

// The location itself, or a private subfolder of a shared one.
Result<Path> private_location(const Path& place) {
  if (::mkdir(place.c_str(), 0700) != 0) STOKER_RETURN_IF_ERROR(make_directories(place));
  if (place.parent_path() == "/tmp") {
    STOKER_RETURN_IF_ERROR(check_owner(place));
    return place;
  }
  struct stat info{};
  if (::stat(place.c_str(), &info) != 0) return posix_error(place.string(), errno);
  const bool is_shared = (info.st_mode & S_IWOTH) != 0;
  if (is_shared && (info.st_mode & S_ISVTX) == 0)
    return exists("{}: any user can rename its files (no sticky bit)", place);
  if (!is_shared && info.st_uid == ::geteuid()) return place;
  Path own = place / format("stoker-{}", ::geteuid());
  if (::mkdir(own.c_str(), 0700) != 0 && errno != EEXIST) return posix_error(own.string(), errno);
  STOKER_RETURN_IF_ERROR(check_owner(own));
  return own;
}

Result<NodeVenv> make_in(const VenvRequest& request, const Path& place, const std::string& name,
                         Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(own, private_location(place));
  const Result<Fd> held = lock(own / (name + ".lock"), deadline);  // until we return
  if (!held.ok()) return held.error();
  NodeVenv venv{.folder = own / name, .note = ""};
  const Status there = check_owner(venv.folder);
  if (!there.ok() && there.code() != Code::not_found) return there;
  if (there.ok() && path_exists(venv.folder / kComplete)) return venv;
  const MonoTime began = RealClock().mono();
  const Status status = install(request, venv.folder, deadline);
  if (!status.ok()) {
    (void)remove_tree(venv.folder);
    return status;
  }
  venv.is_new = true;
  venv.seconds = Seconds(RealClock().mono() - began).count();
  return venv;
}

bool is_location_error(const Status& status) {
  return status.code() == Code::no_space || status.code() == Code::unavailable ||
         status.code() == Code::exists;
}

}  // namespace

std::vector<Path> venv_locations(const Environment& environment, const std::string& host) {
  std::vector<Path> places;
  for (std::string_view name : {"SLURM_TMPDIR", "TMPDIR"}) {
    const std::string folder = variable(environment, name);
    if (folder.starts_with('/')) places.emplace_back(folder);
  }
  places.emplace_back(format("/tmp/stoker-{}", ::geteuid()));
  const std::string attempt = variable(environment, "STOKER_ATTEMPT_DIR");
  if (!attempt.empty()) places.push_back(Path(attempt) / ("venv-" + host));
  return places;
}

Result<NodeVenv> make_venv(const VenvRequest& request, Deadline deadline) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(request.requirements, 1_MiB));
  STOKER_ASSIGN_OR_RETURN(python, python_of(request, deadline));
  const std::string key =
      hex(sha256(format("{}\n{}\n{}", text, request.wheelhouse.string(), python))).substr(0, 12);
  const std::string name = "stoker-venv-" + key;
  std::string note;
  Status last = unavailable("environment.venv: no folder to create it in");
  for (const Path& place : venv_locations(request.environment, host_name())) {
    auto venv = make_in(request, place, name, deadline);
    if (venv.ok()) {
      venv->note = note;
      return venv;
    }
    last = venv.error();
    // A package that is unavailable here is unavailable in the next location, too.
    if (!is_location_error(last) && last.message().starts_with("environment.venv")) return last;
    note = format("not in {}: {}", place, last.message());
  }
  return last;
}

Environment with_venv(Environment environment, const Path& folder) {
  const std::string path = variable(environment, "PATH");
  set_variable(environment, "PATH", (folder / "bin").string() + (path.empty() ? "" : ":" + path));
  set_variable(environment, "VIRTUAL_ENV", folder.string());
  unset_variable(environment, "PYTHONHOME");
  return environment;
}

}  // namespace stoker::rank
