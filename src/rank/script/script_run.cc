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

#include "base/exit_code.h"
#include "base/file.h"
#include "base/stopwatch.h"
#include "rank/folder_presence.h"
#include "rank/process/signals.h"
#include "rank/script/canary.h"
#include "record/events.h"
#include "record/run_events.h"
#include "record/state.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

// Slurm signals the processes of a job one after the other, within milliseconds, or longer on a loaded node.
constexpr Duration kCanaryTimeout = 250ms;
// Between checks of the run folder: scripts run for days and need no more.
constexpr int kFolderTickMs = 2000;

// All signals that a script may be sent on purpose. Stop and continue signals reach every process, and fault
// signals are for this process.
sigset_t forwarded_signals() {
  sigset_t signals;
  ::sigfillset(&signals);
  for (int signal : {SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD, SIGPIPE, SIGSEGV, SIGBUS,
                     SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    ::sigdelset(&signals, signal);
  return signals;
}

// The file behind one of our descriptors, if it is a file.
Path file_behind(int fd) {
  std::error_code error;
  const Path file = std::filesystem::read_symlink(format("/proc/self/fd/{}", fd), error);
  return !error && std::filesystem::is_regular_file(file, error) ? file : Path();
}

// Links the log into the run folder for `stoker logs` and for searches for Slurm's messages. Best effort:
// without a link, the log is still in its place.
void link_log(const Path& link, const Path& log) {
  std::error_code error;
  if (log.empty() || log == std::filesystem::absolute(link).lexically_normal()) return;
  const bool is_inside =
      log.parent_path() == std::filesystem::absolute(link).lexically_normal().parent_path();
  std::filesystem::create_symlink(is_inside ? log.filename() : log, link, error);
}

pid_t start_helper(const std::function<void()>& background_task) {
  if (!background_task) return -1;
  const pid_t parent = ::getpid();
  const pid_t helper = ::fork();
  if (helper > 0) ::setpgid(helper, helper);  // in both processes: the group exists when it is killed
  if (helper != 0) return helper;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setpgid(0, 0);
  (void)!::nice(10);
  background_task();
  ::_exit(0);
}

class Runner {
 public:
  explicit Runner(const ScriptRun& run) : run_(run), folders_(run.attempt.folder()) {}

  Result<Exit> run() {
    const sigset_t signals = forwarded_signals();
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    signal_fd_ = Fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signal_fd_) return posix_error("signalfd", errno);
    STOKER_ASSIGN_OR_RETURN(canary, Canary::start(signals));
    STOKER_ASSIGN_OR_RETURN(events, record::EventWriter::open(run_.attempt.node_events(run_.task)));
    STOKER_RETURN_IF_ERROR(begin(events));
    STOKER_ASSIGN_OR_RETURN(child, start(events));
    const pid_t helper = start_helper(run_.background_task);
    const Exit exit = follow(child, canary);
    (void)end(events, exit);
    if (helper > 0) {
      ::kill(-helper, SIGKILL);  // with its child processes
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
    command.stdin_fd = STDIN_FILENO;  // --input sets it
    // As under Slurm, the script leads its process group: `kill 0` in it ends its processes, and not this
    // one.
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
        if (end_signal_ == 0 && is_signal_pending(signal_fd_.get(), *exit)) handle_signals(child, canary);
        return *exit;
      }
      pollfd waiting[] = {{signal_fd_.get(), POLLIN, 0}, {child.pidfd(), POLLIN, 0}};
      ::poll(waiting, 2, kFolderTickMs);
      handle_signals(child, canary);
      report_folder_loss(folders_.check(mono_now()));
    }
  }

  // The script continues, with its own exit status: only its records are affected.
  void report_folder_loss(const std::optional<FolderLoss>& loss) {
    if (!loss) return;
    lost_folder_ = describe_loss(*loss);
    std::string text = format("stoker: {}\n", lost_folder_);
    if (const std::string cure = undo_command(*loss); !cure.empty()) text += format("  try: {}\n", cure);
    // Slurm's log may be lost as well.
    (void)!::write(STDERR_FILENO, text.data(), text.size());
  }

  void handle_signals(Child& child, Canary& canary) {
    signalfd_siginfo info{};
    while (::read(signal_fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int signal = static_cast<int>(info.ssi_signo);
      if (is_termination_signal(signal)) end_signal_ = signal;
      const bool is_for_all = canary.received(signal, Deadline::after(kCanaryTimeout));
      if (is_for_all && is_termination_signal(signal)) is_ended_ = true;
      if (!is_for_all) (void)child.signal(signal);
    }
  }

  Status end(record::EventWriter& events, const Exit& exit) {
    record::RankEnded ended;
    report_folder_loss(folders_.check_now());
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
    // When Slurm ends a job, a script that cleans up and exits with 0 is still not done.
    const bool is_ended = is_ended_ || (!exit.ok() && end_signal_ != 0);
    const bool is_stopped = exit.code == exit_code::kStoppedAfterCheckpoint || is_ended;
    last.outcome = is_stopped  ? record::Outcome::stopped
                   : exit.ok() ? record::Outcome::done
                               : record::Outcome::failed;
    if (!exit.ok()) last.reason = format("the script ended: {}", to_text(exit));
    last.lost_output = lost_folder_;
    if (is_ended) {
      last.reason = format("ended by {}", signal_name(end_signal_));
      last.exit_code = 128 + end_signal_;
    }
    return write_event(events, last);
  }

  const ScriptRun& run_;
  FolderPresence folders_;
  std::string lost_folder_;  // why the run folder is lost; "" while it is in its place
  Fd signal_fd_;
  int end_signal_ = 0;     // the termination signal
  bool is_ended_ = false;  // all processes of the job received it
};

}  // namespace

Result<Exit> run_script(const ScriptRun& run) { return Runner(run).run(); }

}  // namespace stoker::rank
