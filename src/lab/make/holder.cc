#include "lab/make/holder.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/process.h"
#include "lab/daemons.h"
#include "lab/make/tools.h"

namespace stoker::lab {
namespace {

// The child's setup, prepared before the fork: between fork and exec it only makes system calls.
struct NamespaceSetup {
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

// The name of the failed call, or nullptr.
const char* enter(const NamespaceSetup& setup) {
  if (!setup.network.empty()) {
    const int fd = ::open(setup.network.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) return "setns";
  }
  if (::unshare(CLONE_NEWNS | CLONE_NEWUTS) != 0) return "unshare";
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "mount /";
  if (const char* refused = bind_over(setup.hosts, "/etc/hosts")) return refused;
  if (const char* refused = bind_over(setup.nsswitch, "/etc/nsswitch.conf")) return refused;
  if (setup.name.empty()) return nullptr;
  if (::sethostname(setup.name.c_str(), setup.name.size()) != 0) return "sethostname";
  // Shared memory is private to a node, as on a real cluster.
  if (setup.has_own_shm && ::mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0)
    return "mount /dev/shm";
  if (::mount("tmpfs", setup.local.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, setup.local_options.c_str()) !=
      0) {
    return "mount local disk";
  }
  return nullptr;
}

[[noreturn]] void become_holder(const NamespaceSetup& setup, char* const* argv, char* const* envp,
                                int report_fd) {
  ::setsid();
  Refusal refusal{};
  if (const char* call = enter(setup)) {
    refusal.error = errno;
    std::strncpy(refusal.call, call, sizeof refusal.call - 1);
  } else {
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd : {0, 1, 2}) ::dup2(null, fd);
    (void)!::chdir("/");
    set_close_on_exec_from(3);
    ::execve(setup.sleep.c_str(), argv, envp);
    refusal.error = errno;
    std::strncpy(refusal.call, "exec", sizeof refusal.call - 1);
  }
  (void)!::write(report_fd, &refusal, sizeof refusal);
  ::_exit(127);
}

Result<pid_t> start(const Lab& lab, NamespaceSetup setup) {
  setup.hosts = (lab.folder / "etc/hosts").string();
  setup.nsswitch = (lab.folder / "etc/nsswitch.conf").string();
  setup.sleep = find_tool("sleep");
  std::vector<char*> argv = {setup.title.data(), const_cast<char*>("infinity"), nullptr};
  std::vector<char*> envp;
  for (std::string& variable : setup.variables) envp.push_back(variable.data());
  envp.push_back(nullptr);
  STOKER_ASSIGN_OR_RETURN(report, Pipe::create());
  const pid_t pid = ::fork();
  if (pid < 0) return posix_error(format("{}: fork", lab.name), errno);
  if (pid == 0) become_holder(setup, argv.data(), envp.data(), report.write.get());
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

Status start_holder(const Lab& lab, LabNode& node) {
  NamespaceSetup setup;
  setup.network = "/run/netns/" + node.network_namespace;
  setup.name = node.name;
  setup.local = lab.local(node).string();
  setup.local_options = format("mode=1777,size={}", kLocalDisk.value);
  setup.has_own_shm = !lab.folder.string().starts_with("/dev/shm/");  // else the lab itself would be hidden
  setup.title = format("stoker lab {}: {}", lab.name, node.name);
  setup.variables = {format("STOKER_LAB_MEMBER={}", lab.folder), format("STOKER_LAB_NODE={}", node.name)};
  STOKER_ASSIGN_OR_RETURN(pid, start(lab, std::move(setup)));
  node.holder = pid;
  return {};
}

Status start_login_holder(Lab& lab) {
  NamespaceSetup setup;
  setup.title = format("stoker lab {}: login", lab.name);
  setup.variables = {format("STOKER_LAB_MEMBER={}", lab.folder)};
  STOKER_ASSIGN_OR_RETURN(pid, start(lab, std::move(setup)));
  lab.login = pid;
  return {};
}

}  // namespace stoker::lab
