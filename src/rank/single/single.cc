#include "rank/single/single.h"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include "net/port.h"
#include "rank/checkpoint_presence.h"
#include "rank/environment.h"
#include "rank/member/metric_collector.h"
#include "rank/process/process_tree.h"
#include "rank/process/signals.h"
#include "rank/verdict.h"
#include "slurm/allocation.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

constexpr int kTickMs = 200;
constexpr int kMetricsMs = 1000;
constexpr std::uint64_t kMostOutput = 4u << 20;  // of one turn
constexpr Duration kReapLimit = 5s;

// Metrics of the process. Its output is read from the log, which it writes itself.
class SingleMetrics {
 public:
  SingleMetrics(const SingleOptions& options, const Environment& environment)
      : collector_(options.metrics_from,
                   tracker_options(environment, options.attempt, options.number, options.directory)) {
    is_collecting_ = options.metrics_from == "auto" || options.metrics_from.starts_with("regex:");
    if (!is_collecting_) return;
    auto log = File::open_regular(options.log);
    if (log.ok()) log_ = *std::move(log);
    const auto size = log_.fd() < 0 ? Result<std::uint64_t>(0) : log_.size();
    read_ = size.ok() ? *size : 0;
  }

  bool is_collecting() const { return is_collecting_; }
  void poll(const std::vector<pid_t>& processes) {
    (void)read_output();
    show(collector_.poll(processes));
  }
  /// Call it after the processes have ended.
  void finish() {
    if (!is_collecting_) return;
    while (read_output()) {
    }
    show(collector_.finish());
  }

 private:
  bool read_output() {
    const auto size = log_.fd() < 0 ? Result<std::uint64_t>(0) : log_.size();
    if (!size.ok() || *size <= read_) return false;
    const auto bytes = log_.read_available(read_, std::min(kMostOutput, *size - read_));
    if (!bytes.ok() || bytes->empty()) return false;
    read_ += bytes->size();
    collector_.feed(0, *bytes);
    collector_.read_lines();
    return true;
  }
  void show(const std::vector<std::string>& problems) const {
    for (const std::string& problem : problems) {
      auto log = File::open_append(log_.path());
      if (log.ok()) (void)log->write(format("stoker: {}\n", problem));
    }
  }

  MetricCollector collector_;
  bool is_collecting_ = false;
  File log_;
  std::uint64_t read_ = 0;
};

// Waits for the child, handles signals and the time limit.
class SingleProcess {
 public:
  SingleProcess(const SingleOptions& options, Child child, SingleMetrics& metrics, SignalFd signals,
                SignalFd deaths)
      : options_(options),
        child_(std::move(child)),
        metrics_(metrics),
        signals_(std::move(signals)),
        deaths_(std::move(deaths)) {}

  SingleEnding run() {
    if (metrics_.is_collecting()) metrics_.poll({child_.pid()});  // it may end before the first turn
    while (!exit_) {
      wait();
      while (const auto signal = signals_.next_signal()) handle_signal(*signal);
      check_time_limit();
      collect_metrics();
      reap();
      exit_ = child_.poll();
    }
    handle_pending_signals();
    kill_leftovers();
    metrics_.finish();
    return conclude();
  }

 private:
  void wait() {
    pollfd waiting[] = {{signals_.fd(), POLLIN, 0}, {deaths_.fd(), POLLIN, 0}, {child_.pidfd(), POLLIN, 0}};
    const int longest = metrics_.is_collecting() ? kMetricsMs : -1;
    ::poll(waiting, 3, options_.deadline || kill_at_ ? kTickMs : longest);
  }

  void collect_metrics() {
    const MonoTime now = RealClock().mono();
    if (!metrics_.is_collecting() || now < next_metrics_) return;
    next_metrics_ = now + std::chrono::milliseconds(kMetricsMs);
    std::vector<pid_t> processes;
    for (const ProcessFacts& process : all()) processes.push_back(process.pid);
    metrics_.poll(processes);
  }

  // Reaps orphans: each zombie counts against the limit on processes.
  void reap() {
    while (deaths_.next_signal()) {
    }
    (void)reap_orphans({child_.pid(), options_.helper});
  }

  void handle_signal(int signal) {
    if (signal == SIGUSR2 || signal == SIGUSR1) return forward_signal(signal);
    if (!is_termination_signal(signal)) return;
    if (interrupted_by_ == 0) interrupted_by_ = signal;
    end(signal);
  }

  void handle_pending_signals() {
    if (interrupted_by_ != 0 || !is_signal_pending(signals_.fd(), *exit_)) return;
    while (const auto signal = signals_.next_signal()) {
      if (is_termination_signal(*signal)) interrupted_by_ = *signal;
    }
  }

  void forward_signal(int signal) {
    if (signal == SIGUSR1 && is_notified_) return;
    for (const ProcessFacts& process : all()) {
      if (!handles_signal(process.pid, signal)) continue;
      signal_process(process, signal);
      is_notified_ = is_notified_ || signal == SIGUSR1;
    }
  }

  void end(int signal) {
    if (kill_at_) return;
    for (const ProcessFacts& process : all()) signal_process(process, signal);
    kill_at_ = RealClock().mono() + options_.grace;
  }

  void check_time_limit() {
    if (kill_at_ && RealClock().mono() >= *kill_at_) {
      for (const ProcessFacts& process : all()) signal_process(process, SIGKILL);
    }
    if (!options_.deadline || kill_at_) return;
    const double left = *options_.deadline - unix_seconds(RealClock().wall());
    if (left < 0) {
      is_over_time_ = true;
      end(SIGTERM);
    } else if (options_.notice > Duration::zero() && left < Seconds(options_.notice).count()) {
      forward_signal(SIGUSR1);
    }
  }

  std::vector<ProcessFacts> all() const {
    std::vector<ProcessFacts> all = descendants(::getpid());
    if (options_.helper <= 0) return all;
    std::vector<pid_t> helpers = {options_.helper};
    for (const ProcessFacts& process : descendants(options_.helper)) helpers.push_back(process.pid);
    std::erase_if(all, [&](const ProcessFacts& process) {
      return std::ranges::find(helpers, process.pid) != helpers.end();
    });
    return all;
  }

  bool has_processes_left() const {
    if (options_.helper <= 0) return reap_orphans({});
    (void)reap_orphans({options_.helper});
    return std::ranges::any_of(all(), [](const ProcessFacts& process) { return process.state != 'Z'; });
  }

  // Kills the remaining processes.
  void kill_leftovers() const {
    const Deadline deadline = Deadline::after(kReapLimit);
    do {
      for (const ProcessFacts& process : all()) signal_process(process, SIGKILL);
      if (!has_processes_left()) return;
      ::poll(nullptr, 0, 2);
    } while (!deadline.passed());
  }

  std::string stop_text() const {
    if (has_any_checkpoint(options_.environment)) return "stopped after a checkpoint";
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
  SingleMetrics& metrics_;
  MonoTime next_metrics_;
  SignalFd signals_;
  SignalFd deaths_;  // separate: an exited child is no sign of a pending signal
  std::optional<Exit> exit_;
  std::optional<MonoTime> kill_at_;
  int interrupted_by_ = 0;
  bool is_notified_ = false;
  bool is_over_time_ = false;
};

Result<Fd> open_log(const Path& log) {
  const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) return posix_error(printable(log.string()), errno);
  return Fd(fd);
}

}  // namespace

Result<SingleEnding> run_single(const SingleOptions& options) {
  STOKER_RETURN_IF_ERROR(become_subreaper());
  STOKER_ASSIGN_OR_RETURN(signals, SignalFd::open({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}));
  STOKER_ASSIGN_OR_RETURN(deaths, SignalFd::open({SIGCHLD}));
  STOKER_ASSIGN_OR_RETURN(log, open_log(options.log));
  // Reserved until the end: a program that joins itself still needs an address.
  STOKER_ASSIGN_OR_RETURN(port, net::PortReservation::find(static_cast<std::uint64_t>(::getpid())));
  const RankPlacement place;
  Command command;
  command.argv = options.command;
  command.environment = rank_environment(
      options.environment, place, {.address = "127.0.0.1", .port = port.port()},
      cores_per_rank(options.cpus, place, slurm::cpus_on_node(slurm::process_environment())));
  if (!options.attempt.empty()) set_tracker_variables(*command.environment, options.number);
  command.directory = options.directory;
  command.stdout_fd = log.get();
  command.stderr_fd = log.get();
  command.group = ::stoker::Group::own;
  command.parent_death_signal = SIGTERM;
  SingleMetrics metrics(options, *command.environment);
  STOKER_ASSIGN_OR_RETURN(child, Child::spawn(command));
  if (options.started) options.started(child.pid());
  return SingleProcess(options, std::move(child), metrics, std::move(signals), std::move(deaths)).run();
}

}  // namespace stoker::rank
