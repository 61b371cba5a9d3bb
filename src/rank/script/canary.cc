#include "rank/script/canary.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <span>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"

namespace stoker::rank {
namespace {

constexpr std::chrono::seconds kSameSignalWindow{1};

[[noreturn]] void report_signals(const sigset_t& signals, int reports, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::prctl(PR_SET_NAME, "stoker-canary");
  ::setpgid(0, 0);
  // Must not keep a log or a pipe open, because a reader may wait for its end.
  for (int fd = 0; fd <= 2; ++fd) ::close(fd);
  for (;;) {
    const int signal = ::sigwaitinfo(&signals, nullptr);
    if (signal <= 0) continue;
    const auto number = static_cast<unsigned char>(signal);
    if (::write(reports, &number, 1) != 1) ::_exit(0);
  }
}

}  // namespace

Result<Canary> Canary::start(const sigset_t& signals) {
  STOKER_ASSIGN_OR_RETURN(pipe, Pipe::create());
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return posix_error("fork", errno);
  if (pid == 0) report_signals(signals, pipe.write.get(), parent);
  return Canary(pid, std::move(pipe.read));
}

Canary::~Canary() {
  // A moved-from object has no pipe.
  if (!reports_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Canary::listen(Deadline deadline) {
  pollfd waiting{reports_.get(), POLLIN, 0};
  if (::poll(&waiting, 1, deadline.poll_ms()) <= 0 || (waiting.revents & POLLIN) == 0) return;
  std::array<unsigned char, 64> numbers{};
  const ssize_t count = ::read(reports_.get(), numbers.data(), numbers.size());
  const MonoTime now = RealClock().mono();
  for (const unsigned char number :
       std::span(numbers).first(static_cast<std::size_t>(std::max<ssize_t>(count, 0)))) {
    if (number < seen_.size()) seen_[number] = now;
  }
}

bool Canary::received(int signal, Deadline deadline) {
  if (signal <= 0 || static_cast<std::size_t>(signal) >= seen_.size()) return false;
  listen(Deadline::at(MonoTime()));
  for (;;) {
    MonoTime& seen = seen_[static_cast<std::size_t>(signal)];
    const bool is_new = seen != MonoTime() && RealClock().mono() - seen < kSameSignalWindow;
    if (is_new) {
      seen = MonoTime();  // each of its signals answers one of ours
      return true;
    }
    if (deadline.passed()) return false;
    listen(deadline);
  }
}

}  // namespace stoker::rank
