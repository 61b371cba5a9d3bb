#include "lab/make/guardian.h"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "lab/down.h"

namespace stoker::lab {
namespace {

constexpr int kLookMs = 300;  // polling interval for the lab's folder

[[noreturn]] void guard(const std::string& name, const Path& folder, int owner, int starter) {
  ::setsid();
  ::prctl(PR_SET_NAME, "stoker-guard");
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd : {0, 1, 2}) ::dup2(null, fd);
  (void)!::chdir("/");
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
  for (;;) {
    pollfd waiting{owner, POLLIN, 0};
    if (::poll(&waiting, 1, kLookMs) > 0) break;
    if (!folder_exists(folder)) ::_exit(0);
  }
  ::syscall(SYS_pidfd_send_signal, starter, SIGKILL, nullptr, 0);
  (void)down(name);
  ::_exit(0);
}

}  // namespace

Status start_guardian(Lab& lab) {
  const Fd owner(static_cast<int>(::syscall(SYS_pidfd_open, lab.owner, 0)));
  if (!owner) return invalid("{}: owner {}: no such process (--owner)", lab.name, lab.owner);
  const Fd starter(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  const pid_t pid = ::fork();
  if (pid < 0) return posix_error(format("{}: fork", lab.name), errno);
  if (pid == 0) guard(lab.name, lab.folder, owner.get(), starter.get());
  lab.guardian = pid;
  return {};
}

}  // namespace stoker::lab
