#include "arrays/hdf5/child.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arrays/hdf5/api.h"
#include "base/file.h"
#include "base/process.h"

namespace stoker::arrays::hdf5 {

namespace {

constexpr char kComplete = '\x01';  // the last byte of every answer

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

[[noreturn]] void child_main(const std::function<std::string()>& work, int out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT, SIGPIPE}) {
    ::signal(signal, SIG_DFL);
  }
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  if (const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC); null >= 0) ::dup2(null, STDERR_FILENO);
  write_all(out, work() + kComplete);
  ::_exit(0);
}

Result<std::string> read_response(int in, Deadline deadline, std::uint64_t limit, std::string_view subject) {
  std::string response;
  char piece[64 << 10];
  for (;;) {
    pollfd waited{in, POLLIN, 0};
    const int ready = ::poll(&waited, 1, deadline.poll_ms());
    if (ready == 0 && deadline.passed()) return timeout("{}: libhdf5 timed out", subject);
    if (ready <= 0) continue;
    const ssize_t got = ::read(in, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return response;
    response.append(piece, static_cast<std::size_t>(got));
    if (response.size() > limit) return invalid("{}: has too many chunks and datasets", subject);
  }
}

}  // namespace

Result<std::string> call_in_child(const std::function<std::string()>& work, std::string_view subject,
                                  Deadline deadline, ByteCount limit) {
  STOKER_ASSIGN_OR_RETURN(pipe, Pipe::create());
  pid_t child = 0;
  {
    MutexLock lock(hdf5_mutex());  // no other thread may be inside libhdf5 during fork()
    child = ::fork();
    if (child == 0) child_main(work, pipe.write.get());
  }
  if (child < 0) return posix_error("fork", errno);
  pipe.write.reset();
  Result<std::string> response = read_response(pipe.read.get(), deadline, limit.value, subject);
  if (!response.ok()) ::kill(child, SIGKILL);
  int status = 0;
  pid_t ended = 0;
  do {
    ended = ::waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (!response.ok()) return response;
  if (!response->empty() && response->back() == kComplete) {
    response->pop_back();
    return response;
  }
  // Other code of the process may have waited for all children; then there is no status.
  if (ended == child && WIFSIGNALED(status)) {
    return corrupt("{}: libhdf5 crashed on it ({})", subject, signal_name(WTERMSIG(status)));
  }
  return corrupt("{}: libhdf5 ended without a response", subject);
}

}  // namespace stoker::arrays::hdf5
