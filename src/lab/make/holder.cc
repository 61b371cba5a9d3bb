#include "lab/make/holder.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "lab/daemons.h"
#include "lab/make/tools.h"

namespace stoker::lab {
namespace {

// All that the child needs, prepared before the fork: between fork and exec it only makes system calls.
struct Place {
  std::string network;  // a file of /run/netns; empty: this host's
  std::string name;     // host name; empty: this host's
  std::string hosts;
  std::string nsswitch;
  std::string local;
  std::string local_options;
  bool has_own_shm = true;
  std::string sleep;
  std::string title;
  std::vector<std::string> variables;
};

struct Refusal {
  int error;
  char call[28];
};

const char* bind_over(const std::string& file, const char* target) {
  return ::mount(file.c_str(), target, nullptr, MS_BIND, nullptr) == 0 ? nullptr : target;
}

// The name of the call that was refused, or nullptr.
const char* enter(const Place& place) {
  if (!place.network.empty()) {
    const int fd = ::open(place.network.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) return "setns";
  }
  if (::unshare(CLONE_NEWNS | CLONE_NEWUTS) != 0) return "unshare";
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "mount /";
  if (const char* refused = bind_over(place.hosts, "/etc/hosts")) return refused;
  if (const char* refused = bind_over(place.nsswitch, "/etc/nsswitch.conf")) return refused;
  if (place.name.empty()) return nullptr;
  if (::sethostname(place.name.c_str(), place.name.size()) != 0) return "sethostname";
  // Memory shared between processes of one node only, as between real ones.
  if (place.has_own_shm && ::mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0)
    return "mount /dev/shm";
  if (::mount("tmpfs", place.local.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, place.local_options.c_str()) !=
      0) {
    return "mount local disk";
  }
  return nullptr;
}

[[noreturn]] void become_holder(const Place& place, char* const* argv, char* const* envp, int report_fd) {
  ::setsid();
  Refusal refusal{};
  if (const char* call = enter(place)) {
    refusal.error = errno;
    std::strncpy(refusal.call, call, sizeof refusal.call - 1);
  } else {
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd : {0, 1, 2}) ::dup2(null, fd);
    (void)!::chdir("/");
    ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
    ::execve(place.sleep.c_str(), argv, envp);
    refusal.error = errno;
    std::strncpy(refusal.call, "exec", sizeof refusal.call - 1);
  }
  (void)!::write(report_fd, &refusal, sizeof refusal);
  ::_exit(127);
}

Result<pid_t> start(const Lab& lab, Place place) {
  place.hosts = (lab.folder / "etc/hosts").string();
  place.nsswitch = (lab.folder / "etc/nsswitch.conf").string();
  place.sleep = find_tool("sleep");
  std::vector<char*> argv = {place.title.data(), const_cast<char*>("infinity"), nullptr};
  std::vector<char*> envp;
  for (std::string& variable : place.variables) envp.push_back(variable.data());
  envp.push_back(nullptr);
  OK_OR_RETURN(report, Pipe::create());
  const pid_t pid = ::fork();
  if (pid < 0) return posix_error(format("{}: fork", lab.name), errno);
  if (pid == 0) become_holder(place, argv.data(), envp.data(), report.write.get());
  report.write.reset();
  Refusal refusal{};
  ssize_t n = 0;
  while ((n = ::read(report.read.get(), &refusal, sizeof refusal)) < 0 && errno == EINTR) {
  }
  if (n != sizeof refusal) return pid;  // closed by exec
  return unavailable("{}: {}: {}", lab.name, std::string_view(refusal.call), std::strerror(refusal.error))
      .cure("stoker lab up --mode processes");
}

}  // namespace

Status start_holder(const Lab& lab, Node& node) {
  Place place;
  place.network = "/run/netns/" + node.network_namespace;
  place.name = node.name;
  place.local = lab.local(node).string();
  place.local_options = format("mode=1777,size={}", kLocalDisk.value);
  place.has_own_shm =
      !lab.folder.string().starts_with("/dev/shm/");  // or the lab itself would be out of sight
  place.title = format("stoker lab {}: {}", lab.name, node.name);
  place.variables = {format("STOKER_LAB_MEMBER={}", lab.folder), format("STOKER_LAB_NODE={}", node.name)};
  OK_OR_RETURN(pid, start(lab, std::move(place)));
  node.holder = pid;
  return {};
}

Status start_login_holder(Lab& lab) {
  Place place;
  place.title = format("stoker lab {}: login", lab.name);
  place.variables = {format("STOKER_LAB_MEMBER={}", lab.folder)};
  OK_OR_RETURN(pid, start(lab, std::move(place)));
  lab.login = pid;
  return {};
}

}  // namespace stoker::lab
