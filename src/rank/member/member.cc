#include "rank/member/member.h"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <optional>
#include <poll.h>
#include <unistd.h>

#include "base/process.h"
#include "base/stopwatch.h"
#include "net/port.h"
#include "rank/environment.h"
#include "rank/member/guardian.h"
#include "rank/member/invitation.h"
#include "rank/member/joining.h"
#include "rank/member/program.h"
#include "rank/member/watch.h"
#include "rank/process/output.h"
#include "rank/process/process_tree.h"
#include "rank/process/signals.h"
#include "rank/process/tcp_table.h"
#include "rank/report.h"
#include "record/beacon.h"
#include "record/run_folder.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSampleEvery = 1s;
// While processes are on their way out we look often: a run's end should not be felt.
constexpr int kEndingTickMs = 10;
constexpr int kIdleTickMs = 500;
// How long the kernel may take, on a loaded node, from the first thing of a process that goes to the last.
constexpr int kClearedAwayMs = 2000;
constexpr Duration kReaderPatience = 15s;
// A rank that has been silent for so long may wait for a host that is gone: its sockets tell.
constexpr Duration kLookAtSockets = 3s;
constexpr int kRetransmits = 4;

// One of the command's two output streams.
struct Stream {
  Fd pipe;
  Sink sink;
  LineMarker marker;  // of all ranks but 0, where several write to one output
  LineKeeper keeper;  // of rank 0 there
  LineKeeper logged;  // on its way to the log, which both streams write to
  bool is_shared;
  bool is_marked;
  bool is_shown;  // torchrun's own words are for its log alone
  Tail tail;

  Stream(int fd, const Invitation& invitation)
      : sink(fd, {.patience = kReaderPatience}),
        marker(format("[{}] ", invitation.place.rank.value)),
        is_shared(invitation.shares_output()),
        is_marked(is_shared && invitation.place.rank.value != 0),
        is_shown(invitation.role != Role::node) {}

  void show(std::string_view bytes, MonoTime time) {
    if (!is_shown) return;
    if (!is_shared) return sink.push(bytes);
    sink.push(is_marked ? marker.feed(bytes) : keeper.feed(bytes, time));
  }
  bool is_keeping() const { return keeper.is_keeping() || logged.is_keeping(); }
  void show_rest() {
    if (is_shared) sink.push(is_marked ? marker.finish() : keeper.finish());
    sink.drain();
  }
};

class Member {
 public:
  Member(const MemberOptions& options, Invitation invitation, SignalFd signals, LogFile log)
      : options_(options),
        invitation_(std::move(invitation)),
        beacon_(record::Attempt(invitation_.attempt, 0).beacon(invitation_.place.rank.value)),
        signals_(std::move(signals)),
        log_(std::move(log)),
        out_(options.out_fd, invitation_),
        err_(options.err_fd, invitation_) {}

  Result<int> run() {
    OK_OR_RETURN(joined, join_run(invitation_, signals_));
    if (!joined.rendezvous) return joined.exit.shell_code();
    run_ = std::move(joined.run);
    early_ = std::move(joined.early);
    port_ = std::move(joined.port);
    grace_ = joined.grace;
    start(*joined.rendezvous);
    while (!is_over()) {
      wait();
      hear_signals();
      hear_run();
      pump(out_);
      pump(err_);
      look_after_processes();
      if (mono_now() >= next_sample_) sample();
    }
    finish();
    // The run knows how the command ended. Told of it, torchrun would kill the others before they are asked
    // to end, and write a page. Neither does srun need to hear of a torchrun that had nothing left to do.
    const bool is_told = invitation_.role == Role::torchrun_rank && !run_is_lost_;
    return is_told || is_dismissed_ ? 0 : exit_.shell_code();
  }

 private:
  bool is_node() const { return invitation_.role == Role::node; }
  void start(const Rendezvous& rendezvous);
  void wait();
  void hear_signals();
  void hear_run();
  void pump(Stream& stream);
  bool read_once(Stream& stream);
  void look_for_end();
  void look_for_end_before_this();
  void look_after_processes();
  void command_ended(Exit exit);
  void sample();
  void stop(int signal, Duration grace);
  void pass_on(int signal);
  void kill_all();
  void report_end(std::string start_error, bool has_children);
  void finish();
  bool is_over() const { return has_ended_ && !has_children_; }

  // Constant after construction.
  const MemberOptions options_;
  const Invitation invitation_;
  const Path beacon_;

  SignalFd signals_;
  LogFile log_;
  Stream out_;
  Stream err_;
  net::Channel run_;
  std::vector<net::Message> early_;  // came together with the welcome
  net::PortReservation port_;
  Duration grace_{0};

  std::optional<Child> child_;
  MonoTime started_;
  MemoryKills memory_before_;
  Watch watch_;
  MonoTime next_sample_;
  bool has_ended_ = false;     // the command itself
  bool has_children_ = false;  // anything below us
  Exit exit_;
  bool stop_asked_ = false;
  bool is_told_ = false;  // to save and stop: a process heard SIGUSR1
  bool run_is_lost_ = false;
  std::optional<MonoTime> kill_at_;
  bool is_dismissed_ = false;  // torchrun, whose ranks have all ended
};

void Member::start(const Rendezvous& rendezvous) {
  std::error_code error;
  const Path own = std::filesystem::read_symlink("/proc/self/exe", error);
  Program program = program_of(invitation_, options_.command, rendezvous, current_environment(), own);
  Command command;
  command.argv = std::move(program.argv);
  command.environment = std::move(program.environment);
  command.group = Group::own;
  command.parent_death_signal = SIGKILL;
  memory_before_ = memory_kills();
  started_ = mono_now();
  next_sample_ = started_;
  auto out = Pipe::create();
  auto err = Pipe::create();
  Status problem = out.ok() ? err.status() : out.status();
  if (problem.ok()) {
    // What torchrun's ranks print is in their logs, and goes on as they hand it on.
    if (!is_node()) command.stdout_fd = out->write.get();
    command.stderr_fd = err->write.get();
    auto child = Child::spawn(command);
    problem = child.status();
    if (child.ok()) child_ = std::move(*child);
  }
  if (!child_) {
    has_ended_ = true;
    exit_.code = problem.code() == Code::not_found ? 127 : 126;  // as shells do
    log_.write(format("{}\n", problem.message()));
    report_end(std::string(problem.message()), false);
    return;
  }
  has_children_ = true;
  if (!is_node()) out_.pipe = std::move(out->read);
  err_.pipe = std::move(err->read);
  for (const Stream* stream : {&out_, &err_}) {
    if (stream->pipe) ::fcntl(stream->pipe.get(), F_SETFL, O_NONBLOCK);
  }
  net::Message message{"started", {}};
  if (!invitation_.step.empty()) message.with("step", invitation_.step);
  (void)run_.send(message.with("pid", std::int64_t{child_->pid()}));
}

void Member::wait() {
  std::vector<pollfd> waiting = {{signals_.fd(), POLLIN, 0}};
  if (!run_is_lost_) {
    waiting.push_back({run_.fd(), static_cast<short>(run_.has_unsent() ? POLLIN | POLLOUT : POLLIN), 0});
  }
  if (child_ && !has_ended_) waiting.push_back({child_->pidfd(), POLLIN, 0});
  for (const Stream* stream : {&out_, &err_}) {
    if (stream->pipe && stream->sink.has_room()) waiting.push_back({stream->pipe.get(), POLLIN, 0});
    if (stream->sink.wants_write()) waiting.push_back({stream->sink.fd(), POLLOUT, 0});
  }
  const bool is_keeping = out_.is_keeping() || err_.is_keeping();
  const bool is_soon = has_ended_ || stop_asked_ || is_keeping;
  ::poll(waiting.data(), waiting.size(), is_soon ? kEndingTickMs : kIdleTickMs);
}

void Member::hear_signals() {
  while (const auto signal = signals_.take()) {
    if (*signal == SIGUSR1 || *signal == SIGUSR2) pass_on(*signal);
    if (*signal == SIGTERM || *signal == SIGINT || *signal == SIGHUP) stop(*signal, grace_);
  }
}

void Member::hear_run() {
  if (run_is_lost_) return;
  if (run_.has_unsent()) (void)run_.flush();
  const auto messages = run_.receive();
  if (messages.ok()) early_.insert(early_.end(), messages->begin(), messages->end());
  for (const net::Message& message : std::exchange(early_, {})) {
    const int signal = static_cast<int>(message.integer("signal").value_or(SIGTERM));
    if (!stop_asked_) look_for_end_before_this();
    if (message.kind == "stop") stop(signal, grace_);
    if (message.kind == "kill") stop(SIGKILL, Duration::zero());
    if (message.kind == "signal") pass_on(signal);
    // What is left below torchrun ends itself.
    if (message.kind == "leave" && child_ && !has_ended_) {
      is_dismissed_ = true;
      (void)child_->signal(SIGKILL);
    }
  }
  if (!messages.ok() || run_.is_closed()) {
    run_is_lost_ = true;  // without the run nobody would ever end us
    stop(SIGTERM, grace_);
  }
}

bool Member::read_once(Stream& stream) {
  char buffer[65536];
  const ssize_t n = ::read(stream.pipe.get(), buffer, sizeof buffer);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n <= 0) {
    log_.write(stream.logged.finish());
    stream.pipe.reset();
    return false;
  }
  const std::string_view bytes(buffer, static_cast<std::size_t>(n));
  log_.write(stream.logged.feed(bytes, mono_now()));
  stream.tail.feed(bytes);
  stream.show(bytes, mono_now());
  return true;
}

void Member::pump(Stream& stream) {
  if (stream.pipe && stream.sink.has_room()) (void)read_once(stream);
  log_.write(stream.logged.overdue(mono_now()));
  stream.sink.push(stream.keeper.overdue(mono_now()));
  stream.sink.flush(mono_now());
}

void Member::look_for_end() {
  if (!child_ || has_ended_) return;
  if (const auto exit = child_->poll()) command_ended(*exit);
}

// What has died before it could hear of what the run asks for died by itself, though nobody has looked yet,
// or the kernel is still clearing it away: others may see its sockets go before that.
void Member::look_for_end_before_this() {
  look_for_end();
  if (!child_ || has_ended_) return;
  const auto facts = process_facts(child_->pid());
  if (!facts.ok() || !facts->is_exiting) return;
  pollfd ended{child_->pidfd(), POLLIN, 0};
  ::poll(&ended, 1, kClearedAwayMs);
  look_for_end();
}

void Member::look_after_processes() {
  look_for_end();
  has_children_ =
      reap_orphans(child_ && !has_ended_ ? std::vector<pid_t>{child_->pid()} : std::vector<pid_t>{});
  if (kill_at_ && mono_now() >= *kill_at_) kill_all();
}

void Member::command_ended(Exit exit) {
  has_ended_ = true;
  exit_ = exit;
  // What it wrote last belongs into the report; a pipe holds little, so this ends even if children still
  // write.
  for (Stream* stream : {&out_, &err_}) {
    for (int i = 0; i < 32 && stream->pipe && read_once(*stream); ++i) {
    }
  }
  has_children_ = reap_orphans({});
  report_end("", has_children_);
  if (has_children_ && !stop_asked_) stop(SIGTERM, grace_);
}

void Member::report_end(std::string start_error, bool has_children) {
  Ended ended;
  ended.exit = exit_;
  ended.start_error = std::move(start_error);
  ended.stopped_by_us = stop_asked_;
  ended.time = unix_seconds(RealClock().wall());
  ended.ran_s = Seconds(mono_now() - started_).count();
  ended.where = read_whereabouts(beacon_);
  const MemoryKills memory = memory_kills();
  if (exit_.signal == SIGKILL && memory.count > memory_before_.count) {
    ended.memory = memory.limit_bytes == 0
                       ? "out of memory"
                       : format("out of memory (cgroup limit {})", rounded(ByteCount{memory.limit_bytes}));
  }
  ended.last_line = err_.tail.last_line();
  if (ended.last_line.empty()) ended.last_line = out_.tail.last_line();
  if (has_children) {
    for (const ProcessFacts& process : descendants(::getpid())) {
      if (process.state == 'Z') continue;
      ended.left_behind += format("{}{} (process {})", ended.left_behind.empty() ? "" : ", ",
                                  printable(process.name), process.pid);
    }
  }
  ended.log_complaint = log_.complaint();
  if (!run_is_lost_) (void)run_.send(to_message(ended));
}

void Member::sample() {
  next_sample_ = mono_now() + kSampleEvery;
  if (has_ended_ || is_node()) return;
  Sample seen{.time = mono_now()};
  std::vector<pid_t> pids;
  for (const ProcessFacts& process : descendants(::getpid())) {
    pids.push_back(process.pid);
    seen.cpu_s += process.cpu_s;
    seen.is_stopped = seen.is_stopped || process.state == 'T';
  }
  Beat beat;
  if (const auto beacon = record::read_beacon(beacon_); beacon.ok()) seen.beacon = beacon->count;
  watch_.see(seen);
  beat.stopped_s = Seconds(watch_.stopped_for()).count();
  if (seen.is_stopped) beat.stopped_s = std::max(beat.stopped_s, 0.001);
  beat.silent_s = Seconds(watch_.silent_for()).count();
  beat.has_beacon = watch_.has_beacon();
  beat.where = read_whereabouts(beacon_);
  if (watch_.silent_for() >= kLookAtSockets) beat.waits_for = silent_peer(pids, kRetransmits);
  if (!run_is_lost_ && !run_.has_unsent()) (void)run_.send(to_message(beat));
}

void Member::stop(int signal, Duration grace) {
  const bool is_first = !stop_asked_;
  stop_asked_ = true;
  const MonoTime limit = mono_now() + grace;
  if (!kill_at_ || limit < *kill_at_) kill_at_ = limit;
  if (!is_first && signal != SIGKILL) return;
  for (const ProcessFacts& process : descendants(::getpid())) signal_process(process, signal);
}

// "Save and stop" is told once, whoever says it first: Slurm, to all processes, or the run's own clock.
void Member::pass_on(int signal) {
  if (signal == SIGUSR1 && is_told_) return;
  for (const ProcessFacts& process : descendants(::getpid())) {
    // Without a handler SIGUSR1 would kill it, which is not what "stop after a checkpoint" asks for.
    if (!handles_signal(process.pid, signal)) continue;
    signal_process(process, signal);
    is_told_ = is_told_ || signal == SIGUSR1;
  }
}

void Member::kill_all() {
  for (const ProcessFacts& process : descendants(::getpid())) signal_process(process, SIGKILL);
}

void Member::finish() {
  for (Stream* stream : {&out_, &err_}) {
    while (stream->pipe && read_once(*stream)) stream->sink.drain();
    log_.write(stream->logged.finish());
    stream->show_rest();
  }
  const Deadline deadline = Deadline::after(2s);
  while (run_.has_unsent() && !run_.is_closed() && !deadline.passed()) {
    pollfd waiting{run_.fd(), POLLOUT, 0};
    ::poll(&waiting, 1, 100);
    (void)run_.flush();
  }
}

}  // namespace

Result<int> run_member(const MemberOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  RETURN_IF_ERROR(become_subreaper());
  OK_OR_RETURN(invitation, read_invitation());
  if (invitation.is_under_srun) {
    OK_OR_RETURN(exit_code, guard_rank());
    if (exit_code) return *exit_code;
    RETURN_IF_ERROR(become_subreaper());
  }
  OK_OR_RETURN(signals, SignalFd::open({SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}));
  const record::Attempt attempt(invitation.attempt, 0);
  const int number = invitation.place.rank.value;
  OK_OR_RETURN(
      log, LogFile::open(invitation.role == Role::node ? attempt.torchrun_log(number) : attempt.log(number)));
  const Fd errors = errors_of_the_run();
  MemberOptions own = options;
  if (errors) own.err_fd = errors.get();
  Member member(own, std::move(invitation), std::move(signals), std::move(log));
  return member.run();
}

}  // namespace stoker::rank
