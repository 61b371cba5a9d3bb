#include "rank/process/signals.h"

#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace stoker::rank {

Result<SignalFd> SignalFd::open(std::initializer_list<int> signals) {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : signals) {
    // A blocked signal is queued even when it is ignored, so do not block the signals that nohup ignores.
    struct sigaction action{};
    const bool is_ignored = ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
    if (!is_ignored || signal == SIGCHLD) ::sigaddset(&set, signal);
  }
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return posix_error("signals", errno);
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return posix_error("signals", errno);
  return SignalFd(std::move(fd));
}

std::optional<int> SignalFd::next_signal() {
  signalfd_siginfo info{};
  if (::read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

bool is_termination_signal(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

bool is_signal_pending(int signal_fd, const Exit& exit) {
  // A shell whose command died of a signal exits with 128 + the signal. Other programs exit with other codes,
  // after which a long wait is not worthwhile.
  constexpr int kLateMs = 500;
  constexpr int kPendingMs = 50;
  if (exit.ok()) return false;
  pollfd waiting = {signal_fd, POLLIN, 0};
  return ::poll(&waiting, 1, is_termination_signal(exit.shell_code() - 128) ? kLateMs : kPendingMs) > 0;
}

}  // namespace stoker::rank
