#include "farm/run/worker_signals.h"

namespace stoker::farm {

WorkerSignals::WorkerSignals() {
  ::sigemptyset(&set_);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    struct sigaction action{};
    ::sigaction(signal, nullptr, &action);
    if (signal == SIGCHLD || action.sa_handler != SIG_IGN) ::sigaddset(&set_, signal);
  }
  ::sigprocmask(SIG_BLOCK, &set_, &before_);
}

WorkerSignals::~WorkerSignals() {
  while (wait(Duration(0))) {
  }
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> WorkerSignals::wait(Duration longest) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
  const timespec limit{seconds.count(), (longest - seconds).count()};
  const int signal = ::sigtimedwait(&set_, nullptr, &limit);
  return signal > 0 && signal != SIGCHLD ? std::optional(signal) : std::nullopt;
}

}  // namespace stoker::farm
