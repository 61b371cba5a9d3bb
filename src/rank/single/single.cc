#include "rank/single/single.h"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include "net/port.h"
#include "rank/environment.h"
#include "rank/process/process_tree.h"
#include "rank/process/signals.h"
#include "rank/saved.h"
#include "rank/verdict.h"
#include "slurm/allocation.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

constexpr int kTickMs = 200;
constexpr Duration kReapLimit = 5s;

// Waits for the child, hears signals, keeps the time.
class Single {
 public:
  Single(const SingleOptions& options, Child child, SignalFd signals, SignalFd deaths)
      : options_(options),
        child_(std::move(child)),
        signals_(std::move(signals)),
        deaths_(std::move(deaths)) {}

  SingleEnding run() {
    while (!exit_) {
      wait();
      while (const auto signal = signals_.take()) hear(*signal);
      keep_time();
      reap();
      exit_ = child_.poll();
    }
    hear_late();
    clear_away();
    return conclude();
  }

 private:
  void wait() {
    pollfd waiting[] = {{signals_.fd(), POLLIN, 0}, {deaths_.fd(), POLLIN, 0}, {child_.pidfd(), POLLIN, 0}};
    ::poll(waiting, 3, options_.deadline || kill_at_ ? kTickMs : -1);
  }

  // Orphans are ours: each that nobody reaps counts against the limits on processes.
  void reap() {
    while (deaths_.take()) {
    }
    (void)reap_orphans({child_.pid()});
  }

  void hear(int signal) {
    if (signal == SIGUSR2 || signal == SIGUSR1) return pass_on(signal);
    if (!asks_for_the_end(signal)) return;
    if (interrupted_by_ == 0) interrupted_by_ = signal;
    end(signal);
  }

  void hear_late() {
    if (interrupted_by_ != 0 || !is_signal_on_its_way(signals_.fd(), *exit_)) return;
    while (const auto signal = signals_.take()) {
      if (asks_for_the_end(*signal)) interrupted_by_ = *signal;
    }
  }

  void pass_on(int signal) {
    if (signal == SIGUSR1 && is_told_) return;
    for (const ProcessFacts& process : all()) {
      if (!handles_signal(process.pid, signal)) continue;
      signal_process(process, signal);
      is_told_ = is_told_ || signal == SIGUSR1;
    }
  }

  void end(int signal) {
    if (kill_at_) return;
    for (const ProcessFacts& process : all()) signal_process(process, signal);
    kill_at_ = RealClock().mono() + options_.grace;
  }

  void keep_time() {
    if (kill_at_ && RealClock().mono() >= *kill_at_) {
      for (const ProcessFacts& process : all()) signal_process(process, SIGKILL);
    }
    if (!options_.deadline || kill_at_) return;
    const double left = *options_.deadline - unix_seconds(RealClock().wall());
    if (left < 0) {
      is_over_time_ = true;
      end(SIGTERM);
    } else if (options_.notice > Duration::zero() && left < Seconds(options_.notice).count()) {
      pass_on(SIGUSR1);
    }
  }

  static std::vector<ProcessFacts> all() { return descendants(::getpid()); }

  // What it has left behind goes with it.
  static void clear_away() {
    const Deadline deadline = Deadline::after(kReapLimit);
    do {
      for (const ProcessFacts& process : all()) signal_process(process, SIGKILL);
      if (!reap_orphans({})) return;
      ::poll(nullptr, 0, 2);
    } while (!deadline.passed());
  }

  std::string stop_text() const {
    if (has_saved(options_.environment)) return "stopped after a checkpoint";
    return format("exit code {} (saved and stopped), but there is no checkpoint (STOKER_CHECKPOINT_DIR)",
                  kStoppedAfterCheckpoint);
  }

  SingleEnding conclude() const {
    const int code = exit_->shell_code();
    if (code == kStoppedAfterCheckpoint)
      return {record::Outcome::stopped, code, stop_text(), interrupted_by_};
    if (interrupted_by_ != 0) {
      return {record::Outcome::stopped, 128 + interrupted_by_,
              format("interrupted by {}", signal_name(interrupted_by_)), interrupted_by_};
    }
    if (is_over_time_) return {record::Outcome::stopped, 1, options_.deadline_text, 0};
    if (exit_->ok()) return {};
    return {record::Outcome::failed, code, to_text(*exit_), 0};
  }

  const SingleOptions& options_;
  Child child_;
  SignalFd signals_;
  SignalFd deaths_;  // apart: what has died does not say that a signal is on its way
  std::optional<Exit> exit_;
  std::optional<MonoTime> kill_at_;
  int interrupted_by_ = 0;
  bool is_told_ = false;
  bool is_over_time_ = false;
};

Result<Fd> open_log(const Path& log) {
  const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return posix_error(printable(log.string()), errno);
  return Fd(fd);
}

}  // namespace

Result<SingleEnding> run_single(const SingleOptions& options) {
  RETURN_IF_ERROR(become_subreaper());
  OK_OR_RETURN(signals, SignalFd::open({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}));
  OK_OR_RETURN(deaths, SignalFd::open({SIGCHLD}));
  OK_OR_RETURN(log, open_log(options.log));
  // Kept until it has ended: a program that meets itself still wants an address.
  OK_OR_RETURN(port, net::PortReservation::find(static_cast<std::uint64_t>(::getpid())));
  const Place place;
  Command command;
  command.argv = options.command;
  command.environment = rank_environment(
      options.environment, place, {.address = "127.0.0.1", .port = port.port()},
      cores_per_rank(options.cpus, place, slurm::cpus_on_node(slurm::process_environment())));
  command.directory = options.directory;
  command.stdout_fd = log.get();
  command.stderr_fd = log.get();
  command.group = ::stoker::Group::own;
  command.parent_death_signal = SIGTERM;
  OK_OR_RETURN(child, Child::spawn(command));
  if (options.started) options.started(child.pid());
  return Single(options, std::move(child), std::move(signals), std::move(deaths)).run();
}

}  // namespace stoker::rank
