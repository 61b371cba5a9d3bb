#include "rank/member/guardian.h"

#include <csignal>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "rank/process/process_tree.h"
#include "stoker/time.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLeftoverLimit = 5s;

// Slurm signals the rank as well, so the rank handles it.
void wait_for_rank(pid_t rank, int* status) {
  while (::waitpid(rank, status, 0) < 0 && errno == EINTR) {
  }
}

void end_leftovers() {
  const Deadline deadline = Deadline::after(kLeftoverLimit);
  while (reap_orphans({}) && !deadline.passed()) {
    for (const ProcessFacts& process : descendants(::getpid())) signal_process(process, SIGKILL);
    ::poll(nullptr, 0, 5);
  }
}

}  // namespace

Result<std::optional<int>> guard_rank() {
  STOKER_RETURN_IF_ERROR(become_subreaper());
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, &before);
  const pid_t guardian = ::getpid();
  const pid_t rank = ::fork();
  if (rank < 0) return posix_error("fork", errno);
  if (rank == 0) {
    // Without its guardian, no process would end the rank.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (::getppid() != guardian) return cancelled("rank: its guardian is gone");
    return std::optional<int>();
  }
  int status = 0;
  wait_for_rank(rank, &status);
  end_leftovers();
  const Exit exit = WIFSIGNALED(status) ? Exit{0, WTERMSIG(status)} : Exit{WEXITSTATUS(status), 0};
  return std::optional<int>(exit.shell_code());
}

}  // namespace stoker::rank
