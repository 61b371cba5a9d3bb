#include "rank/member/member.h"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <unistd.h>

#include "base/process.h"
#include "net/port.h"
#include "net/world.h"
#include "rank/environment.h"
#include "rank/member/guardian.h"
#include "rank/member/invitation.h"
#include "rank/member/watch.h"
#include "rank/process/output.h"
#include "rank/process/process_tree.h"
#include "rank/process/signals.h"
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
constexpr Duration kReaderPatience = 15s;

MonoTime now() { return RealClock().mono(); }

// One of the command's two output streams.
struct Stream {
  Fd pipe;
  Sink sink;
  LineMarker marker;
  bool is_marked;
  Tail tail;

  Stream(int fd, const Place& place, bool marked)
      : sink(fd, {.patience = kReaderPatience}),
        marker(format("[{}] ", place.rank.value)),
        is_marked(marked && place.rank.value != 0) {}
};

class Member {
 public:
  Member(const MemberOptions& options, Invitation invitation, SignalFd signals, LogFile log)
      : options_(options),
        invitation_(std::move(invitation)),
        place_(invitation_.place),
        beacon_(record::Attempt(invitation_.attempt, 0).beacon(place_.rank.value)),
        signals_(std::move(signals)),
        log_(std::move(log)),
        out_(options.out_fd, place_, invitation_.is_under_srun),
        err_(options.err_fd, place_, invitation_.is_under_srun) {}

  Result<int> run() {
    OK_OR_RETURN(rendezvous, join_run());
    if (!rendezvous) return exit_.shell_code();
    start(*rendezvous);
    while (!is_over()) {
      wait();
      hear_signals();
      hear_run();
      pump(out_);
      pump(err_);
      look_after_processes();
      if (now() >= next_sample_) sample();
    }
    finish();
    return exit_.shell_code();
  }

 private:
  // Nothing when the run will not have this rank: it says why, `exit_` is set.
  Result<std::optional<Rendezvous>> join_run();
  std::optional<net::Message> await_answer(Deadline deadline);
  void start(const Rendezvous& rendezvous);
  void wait();
  void hear_signals();
  void hear_run();
  void pump(Stream& stream);
  bool read_once(Stream& stream);
  void look_for_end();
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
  const Place place_;
  const Path beacon_;

  SignalFd signals_;
  LogFile log_;
  Stream out_;
  Stream err_;
  net::Channel run_;
  std::vector<net::Message> early_;  // came together with the welcome
  net::PortReservation port_;
  Duration grace_ = 30s;

  std::optional<Child> child_;
  MonoTime started_;
  MemoryKills memory_before_;
  Watch watch_;
  MonoTime next_sample_;
  bool has_ended_ = false;     // the command itself
  bool has_children_ = false;  // anything below us
  Exit exit_;
  bool stop_asked_ = false;
  bool run_is_lost_ = false;
  std::optional<MonoTime> kill_at_;
};

Result<std::optional<Rendezvous>> Member::join_run() {
  net::Hello hello;
  hello.rank = place_.rank;
  hello.world_size = place_.world_size;
  hello.host = net::host_name();
  // Several nodes of Slurm may share a host, and its name for one need not be the kernel's.
  if (invitation_.is_under_srun) hello.node = environment_value("SLURMD_NODENAME").value_or("");
  hello.pid = ::getpid();
  if (place_.rank.value == 0) {
    const std::string wish = environment_value("MASTER_PORT").value_or("");
    std::int64_t port = 0;
    if (!wish.empty() && (!parse_number(wish, &port) || port < 1 || port > 65535)) {
      return invalid("MASTER_PORT: '{}' is not a port", printable(wish));
    }
    auto reserved = wish.empty() ? net::PortReservation::find(static_cast<std::uint64_t>(::getpid()) * 7919)
                                 : net::PortReservation::take(static_cast<std::uint16_t>(port));
    if (!reserved.ok()) hello.problem = reserved.status().to_string();
    if (reserved.ok()) port_ = std::move(*reserved);
    hello.port = port_.port();
  }
  const Deadline deadline = Deadline::after(invitation_.start_limit + 5s);
  OK_OR_RETURN(channel, net::join(invitation_.world, hello, deadline));
  run_ = std::move(channel);
  const auto answer = await_answer(deadline);
  if (!answer) return std::optional<Rendezvous>();
  grace_ = std::chrono::duration_cast<Duration>(Seconds(answer->number("grace_s").value_or(30)));
  return std::optional<Rendezvous>(
      {std::string(answer->text("address")), static_cast<int>(answer->integer("port").value_or(0))});
}

std::optional<net::Message> Member::await_answer(Deadline deadline) {
  exit_ = {3, 0};  // unavailable: refused, or the run ended before all ranks had come
  while (!deadline.passed() && !run_.is_closed()) {
    pollfd waiting[] = {{run_.fd(), POLLIN, 0}, {signals_.fd(), POLLIN, 0}};
    ::poll(waiting, 2, deadline.poll_ms());
    if (const auto signal = signals_.take();
        signal && (*signal == SIGTERM || *signal == SIGINT || *signal == SIGHUP)) {
      exit_ = {0, *signal};
      return std::nullopt;
    }
    auto messages = run_.receive();
    if (!messages.ok()) return std::nullopt;
    for (auto message = messages->begin(); message != messages->end(); ++message) {
      if (message->kind == "refused" || message->kind == "stop") return std::nullopt;
      if (message->kind != "welcome") continue;
      exit_ = {};
      early_.assign(std::next(message), messages->end());
      return std::move(*message);
    }
  }
  return std::nullopt;
}

void Member::start(const Rendezvous& rendezvous) {
  Command command;
  command.argv = options_.command;
  command.environment =
      rank_environment(current_environment(), place_, rendezvous, cores_per_rank(invitation_.cpus, place_));
  command.group = Group::own;
  command.parent_death_signal = SIGKILL;
  memory_before_ = memory_kills();
  started_ = now();
  next_sample_ = started_;
  auto out = Pipe::create();
  auto err = Pipe::create();
  Status problem = out.ok() ? err.status() : out.status();
  if (problem.ok()) {
    command.stdout_fd = out->write.get();
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
  out_.pipe = std::move(out->read);
  err_.pipe = std::move(err->read);
  for (const Stream* stream : {&out_, &err_}) ::fcntl(stream->pipe.get(), F_SETFL, O_NONBLOCK);
  net::Message message{"started", {}};
  if (invitation_.is_under_srun) message.with("step", environment_value("SLURM_STEP_ID").value_or(""));
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
  const bool is_ending = has_ended_ || stop_asked_;
  ::poll(waiting.data(), waiting.size(), is_ending ? kEndingTickMs : kIdleTickMs);
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
    // What has died before it could hear of this died by itself, though nobody has looked yet.
    if (!stop_asked_) look_for_end();
    if (message.kind == "stop") stop(signal, grace_);
    if (message.kind == "kill") stop(SIGKILL, Duration::zero());
    if (message.kind == "signal") pass_on(signal);
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
    stream.pipe.reset();
    return false;
  }
  const std::string_view bytes(buffer, static_cast<std::size_t>(n));
  log_.write(bytes);
  stream.tail.feed(bytes);
  stream.sink.push(stream.is_marked ? stream.marker.feed(bytes) : bytes);
  return true;
}

void Member::pump(Stream& stream) {
  if (stream.pipe && stream.sink.has_room()) (void)read_once(stream);
  stream.sink.flush(now());
}

void Member::look_for_end() {
  if (!child_ || has_ended_) return;
  if (const auto exit = child_->poll()) command_ended(*exit);
}

void Member::look_after_processes() {
  look_for_end();
  has_children_ =
      reap_orphans(child_ && !has_ended_ ? std::vector<pid_t>{child_->pid()} : std::vector<pid_t>{});
  if (kill_at_ && now() >= *kill_at_) kill_all();
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
  ended.ran_s = Seconds(now() - started_).count();
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
  next_sample_ = now() + kSampleEvery;
  if (has_ended_) return;
  Sample seen{.time = now()};
  for (const ProcessFacts& process : descendants(::getpid())) {
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
  if (!run_is_lost_ && !run_.has_unsent()) (void)run_.send(to_message(beat));
}

void Member::stop(int signal, Duration grace) {
  const bool is_first = !stop_asked_;
  stop_asked_ = true;
  const MonoTime limit = now() + grace;
  if (!kill_at_ || limit < *kill_at_) kill_at_ = limit;
  if (!is_first && signal != SIGKILL) return;
  for (const ProcessFacts& process : descendants(::getpid())) signal_process(process, signal);
}

void Member::pass_on(int signal) {
  for (const ProcessFacts& process : descendants(::getpid())) {
    // Without a handler SIGUSR1 would kill it, which is not what "stop after a checkpoint" asks for.
    if (handles_signal(process.pid, signal)) signal_process(process, signal);
  }
}

void Member::kill_all() {
  for (const ProcessFacts& process : descendants(::getpid())) signal_process(process, SIGKILL);
}

void Member::finish() {
  for (Stream* stream : {&out_, &err_}) {
    while (stream->pipe && read_once(*stream)) stream->sink.drain();
    if (stream->is_marked) stream->sink.push(stream->marker.finish());
    stream->sink.drain();
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
  OK_OR_RETURN(log, LogFile::open(record::Attempt(invitation.attempt, 0).log(invitation.place.rank.value)));
  Member member(options, std::move(invitation), std::move(signals), std::move(log));
  return member.run();
}

}  // namespace stoker::rank
