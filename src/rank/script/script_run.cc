#include "rank/script/script_run.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "rank/process/signals.h"
#include "rank/script/canary.h"
#include "record/events.h"
#include "record/run_events.h"
#include "record/state.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

// Slurm signals the processes of a job one after the other, within milliseconds; on a loaded node it takes
// longer.
constexpr Duration kForTheCanary = 250ms;

// All that a script may be sent on purpose. What stops or continues goes to every process by itself, and what
// a fault raises is ours.
sigset_t passed_on() {
  sigset_t signals;
  ::sigfillset(&signals);
  for (int signal : {SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD, SIGPIPE, SIGSEGV, SIGBUS,
                     SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    ::sigdelset(&signals, signal);
  return signals;
}

// The file behind one of our own descriptors, if it is one.
Path file_behind(int fd) {
  std::error_code error;
  const Path file = std::filesystem::read_symlink(format("/proc/self/fd/{}", fd), error);
  return !error && std::filesystem::is_regular_file(file, error) ? file : Path();
}

// So that `stoker logs` and whoever looks for Slurm's words find them wherever the script's own options put
// them. Best effort: a log that cannot be linked is still where it is.
void link_log(const Path& link, const Path& log) {
  std::error_code error;
  if (log.empty() || log == std::filesystem::absolute(link).lexically_normal()) return;
  const bool is_inside =
      log.parent_path() == std::filesystem::absolute(link).lexically_normal().parent_path();
  std::filesystem::create_symlink(is_inside ? log.filename() : log, link, error);
}

pid_t start_helper(const std::function<void()>& beside) {
  if (!beside) return -1;
  const pid_t parent = ::getpid();
  const pid_t helper = ::fork();
  if (helper > 0) ::setpgid(helper, helper);  // whoever is first: the group is there when it is killed
  if (helper != 0) return helper;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setpgid(0, 0);
  (void)!::nice(10);
  beside();
  ::_exit(0);
}

class Runner {
 public:
  explicit Runner(const ScriptRun& run) : run_(run) {}

  Result<Exit> run() {
    const sigset_t signals = passed_on();
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    signal_fd_ = Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signal_fd_) return posix_error("signalfd", errno);
    OK_OR_RETURN(canary, Canary::start(signals));
    OK_OR_RETURN(events, record::EventWriter::open(run_.attempt.node_events(run_.task)));
    RETURN_IF_ERROR(begin(events));
    OK_OR_RETURN(child, start(events));
    const pid_t helper = start_helper(run_.beside);
    const Exit exit = follow(child, canary);
    (void)end(events, exit);
    if (helper > 0) {
      ::kill(-helper, SIGKILL);  // with what it has just asked something of
      ::waitpid(helper, nullptr, 0);
    }
    return exit;
  }

 private:
  Status begin(record::EventWriter& events) {
    link_log(run_.attempt.log(run_.task), file_behind(STDOUT_FILENO));
    if (!run_.is_array) link_log(run_.attempt.batch_log(), file_behind(STDERR_FILENO));
    return write_event(events, record::AttemptStarted{.node = run_.task,
                                                      .supervisor = record::this_process(),
                                                      .world_size = 1,
                                                      .command = run_.command,
                                                      .resume = "",
                                                      .resume_step = std::nullopt,
                                                      .scheduler_job = run_.scheduler_job});
  }

  Result<Child> start(record::EventWriter& events) {
    Command command;
    command.argv = run_.command;
    command.environment = run_.environment;
    command.stdin_fd = STDIN_FILENO;  // --input gives a script one
    // As under Slurm, the script leads its process group: `kill 0` in it ends what it started, and not us.
    command.group = Group::own;
    command.parent_death_signal = SIGTERM;
    auto child = Child::spawn(command);
    if (!child.ok()) {
      (void)write_event(events, record::AttemptEnded{.node = run_.task,
                                                     .outcome = record::Outcome::failed,
                                                     .exit_code = 1,
                                                     .first_rank = std::nullopt,
                                                     .reason = std::string(child.error().message()),
                                                     .job_state = ""});
      return child;
    }
    (void)write_event(events, record::RankStarted{run_.task, record::this_process().host, child->pid()});
    return child;
  }

  Exit follow(Child& child, Canary& canary) {
    for (;;) {
      if (const auto exit = child.poll()) {
        if (asked_by_ == 0 && is_signal_on_its_way(signal_fd_.get(), *exit)) hear(child, canary);
        return *exit;
      }
      pollfd waiting[] = {{signal_fd_.get(), POLLIN, 0}, {child.pidfd(), POLLIN, 0}};
      ::poll(waiting, 2, 10'000);
      hear(child, canary);
    }
  }

  void hear(Child& child, Canary& canary) {
    signalfd_siginfo info{};
    while (::read(signal_fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (asks_for_the_end(signal)) asked_by_ = signal;
      const bool is_for_all = canary.got(signal, Deadline::after(kForTheCanary));
      if (is_for_all && asks_for_the_end(signal)) is_ended_ = true;
      if (!is_for_all) (void)child.signal(signal);
    }
  }

  Status end(record::EventWriter& events, const Exit& exit) {
    record::RankEnded ended;
    ended.rank = run_.task;
    ended.host = record::this_process().host;
    if (exit.signal != 0) {
      ended.signal = exit.signal;
    } else {
      ended.exit_code = exit.code;
    }
    ended.reason = exit.ok() ? "" : to_text(exit);
    (void)write_event(events, ended);
    record::AttemptEnded last;
    last.node = run_.task;
    last.exit_code = exit.shell_code();
    // When Slurm ends a job, a script that cleans up and ends well is not done all the same.
    const bool is_ended = is_ended_ || (!exit.ok() && asked_by_ != 0);
    const bool is_stopped = exit.code == 75 || is_ended;
    last.outcome = is_stopped  ? record::Outcome::stopped
                   : exit.ok() ? record::Outcome::done
                               : record::Outcome::failed;
    if (!exit.ok()) last.reason = format("the script ended: {}", to_text(exit));
    if (is_ended) {
      last.reason = format("ended by {}", signal_name(asked_by_));
      last.exit_code = 128 + asked_by_;
    }
    return write_event(events, last);
  }

  const ScriptRun& run_;
  Fd signal_fd_;
  int asked_by_ = 0;       // the signal that asked for the end
  bool is_ended_ = false;  // it came to all processes of the job
};

}  // namespace

Result<Exit> run_script(const ScriptRun& run) { return Runner(run).run(); }

}  // namespace stoker::rank
