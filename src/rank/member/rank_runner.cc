#include "rank/member/rank_runner.h"

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
#include "rank/member/join_run.h"
#include "rank/member/metric_collector.h"
#include "rank/member/program.h"
#include "rank/member/rank_config.h"
#include "rank/member/runner_state.h"
#include "rank/member/watch.h"
#include "rank/process/output.h"
#include "rank/process/process_tree.h"
#include "rank/process/signals.h"
#include "rank/process/tcp_table.h"
#include "rank/report.h"
#include "rank/sampling/node_sampler.h"
#include "rank/stacks/stacks.h"
#include "record/beacon.h"
#include "record/run_folder.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

constexpr Duration kSampleEvery = 1s;
// Polls often while processes exit, so that the end of a run has no visible delay.
constexpr int kEndingTickMs = 10;
constexpr int kIdleTickMs = 500;
// The time the kernel may take, on a loaded node, to tear down an exiting process.
constexpr int kProcessExitMs = 2000;
constexpr Duration kReaderTimeout = 15s;
// A rank without progress for this long may wait for a dead host: inspect its sockets.
constexpr Duration kSocketCheckAfter = 3s;
constexpr int kRetransmits = 4;
// For the answer of one process to kStackSignal: it begins at once, or not at all.
constexpr Duration kStackAnswer = 1s;
constexpr Duration kStackPause = 200ms;  // after the last of its output

observe::TrackerOptions trackers_of(const RankConfig& config) {
  const int rank = config.place.rank.value;
  Environment command = current_environment();
  set_tracker_variables(command, rank);
  std::error_code error;
  return tracker_options(command, config.attempt, rank, std::filesystem::current_path(error));
}

// One of the command's two output streams.
struct Stream {
  Fd pipe;
  Sink sink;
  LinePrefixer marker;     // for all ranks except 0, where several write to one output
  LineBuffer line_buffer;  // for rank 0 in that case
  LineBuffer log_buffer;   // for the log, which both streams share
  bool is_shared;
  bool is_prefixed;
  bool is_shown;  // torchrun's own output goes only to its log
  Tail tail;

  Stream(int fd, const RankConfig& config)
      : sink(fd, {.write_timeout = kReaderTimeout}),
        marker(format("[{}] ", config.place.rank.value)),
        is_shared(config.shares_output()),
        is_prefixed(is_shared && config.place.rank.value != 0),
        is_shown(config.role != Role::node) {}

  void show(std::string_view bytes, MonoTime time) {
    if (!is_shown) return;
    if (!is_shared) return sink.push(bytes);
    sink.push(is_prefixed ? marker.feed(bytes) : line_buffer.feed(bytes, time));
  }
  bool has_pending() const { return line_buffer.has_pending() || log_buffer.has_pending(); }
  void flush_rest() {
    if (is_shared) sink.push(is_prefixed ? marker.finish() : line_buffer.finish());
    sink.drain();
  }
};

class RankRunner {
 public:
  RankRunner(const RankRunnerOptions& options, RankConfig config, SignalFd signals, LogFile log)
      : options_(options),
        config_(std::move(config)),
        beacon_(record::Attempt(config_.attempt, 0).beacon(config_.place.rank.value)),
        signals_(std::move(signals)),
        log_(std::move(log)),
        metrics_(config_.metrics_from, trackers_of(config_)),
        out_(options.out_fd, config_),
        err_(options.err_fd, config_) {}

  Result<int> run() {
    STOKER_ASSIGN_OR_RETURN(joined, join_run(config_, signals_));
    if (!joined.rendezvous) return joined.exit.shell_code();
    run_ = std::move(joined.run);
    pending_messages_ = std::move(joined.pending_messages);
    port_ = std::move(joined.port);
    grace_ = joined.grace;
    start(*joined.rendezvous);
    while (state_.phase != RunnerPhase::over) {
      wait();
      handle_signals();
      handle_run_messages();
      pump(out_);
      pump(err_);
      metrics_.read_lines();
      reap_processes();
      if (mono_now() >= next_sample_) sample();
      report_gpu_faults();
    }
    finish();
    return exit_code(state_, config_.role);
  }

 private:
  bool is_node() const { return config_.role == Role::node; }
  void start(const Rendezvous& rendezvous);
  void wait();
  void handle_signals();
  void handle_run_messages();
  void pump(Stream& stream);
  bool read_once(Stream& stream);
  void poll_command();
  void poll_command_before_message();
  void reap_processes();
  void handle_command_exit(Exit exit);
  void sample();
  void start_node_samples(const net::ControlMessage& message);
  void stop_node_samples();
  void report_gpu_faults();
  void print_line(const std::string& line);
  void apply(const RunnerEvent& event);
  void request_stop(int signal, Duration grace);
  void forward_signal(int signal);
  void signal_all(int signal);
  void write_stacks();
  std::string take_output();
  void report_end(const Exit& exit, std::string start_error, bool has_children);
  void show_problems(const std::vector<std::string>& problems);
  void finish();
  bool is_command_running() const { return child_ && !state_.has_ended(); }
  bool is_run_lost() const { return state_.stop == RunnerStop::run_lost; }

  // Constant after construction.
  const RankRunnerOptions options_;
  const RankConfig config_;
  const Path beacon_;

  SignalFd signals_;
  LogFile log_;
  MetricCollector metrics_;
  Stream out_;
  Stream err_;
  net::Channel run_;
  std::vector<net::ControlMessage> pending_messages_;  // received together with the welcome
  net::PortReservation port_;
  Duration grace_{0};

  std::optional<Child> child_;
  MonoTime started_;
  MemoryKills memory_before_;
  Watch watch_;
  MonoTime next_sample_;
  record::EventWriter node_events_;
  std::unique_ptr<NodeSampler> node_sampler_;  // in one process per node
  RunnerState state_;
  bool is_notified_ = false;              // to save and stop: a process handled SIGUSR1
  std::string stack_;                     // where the training was when it was stopped, if that was asked
  std::string* recent_output_ = nullptr;  // receives output of the command
};

void RankRunner::start(const Rendezvous& rendezvous) {
  std::error_code error;
  const Path own = std::filesystem::read_symlink("/proc/self/exe", error);
  Program program = program_of(config_, options_.command, rendezvous, current_environment(), own);
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
    // The output of torchrun's ranks is in their logs and is forwarded from there.
    if (!is_node()) command.stdout_fd = out->write.get();
    command.stderr_fd = err->write.get();
    auto child = Child::spawn(command);
    problem = child.status();
    if (child.ok()) child_ = std::move(*child);
  }
  if (!child_) {
    const Exit exit{problem.code() == Code::not_found ? 127 : 126, 0};  // like shells
    log_.write(format("{}\n", problem.message()));
    report_end(exit, std::string(problem.message()), false);
    apply(runner_event::CommandExited{.exit = exit});
    return;
  }
  (void)metrics_.poll({child_->pid()});  // it may end before the first sample
  if (!is_node()) out_.pipe = std::move(out->read);
  err_.pipe = std::move(err->read);
  for (const Stream* stream : {&out_, &err_}) {
    if (stream->pipe) ::fcntl(stream->pipe.get(), F_SETFL, O_NONBLOCK);
  }
  net::ControlMessage message{"started", {}};
  if (!config_.step.empty()) message.with("step", config_.step);
  (void)run_.send(message.with("pid", std::int64_t{child_->pid()}));
}

void RankRunner::wait() {
  std::vector<pollfd> waiting = {{signals_.fd(), POLLIN, 0}};
  if (!is_run_lost()) {
    waiting.push_back({run_.fd(), static_cast<short>(run_.has_unsent() ? POLLIN | POLLOUT : POLLIN), 0});
  }
  if (is_command_running()) waiting.push_back({child_->pidfd(), POLLIN, 0});
  for (const Stream* stream : {&out_, &err_}) {
    if (stream->pipe && stream->sink.has_capacity()) waiting.push_back({stream->pipe.get(), POLLIN, 0});
    if (stream->sink.wants_write()) waiting.push_back({stream->sink.fd(), POLLOUT, 0});
  }
  const bool has_pending = out_.has_pending() || err_.has_pending();
  const bool is_soon = state_.has_ended() || state_.is_stopping() || has_pending;
  ::poll(waiting.data(), waiting.size(), is_soon ? kEndingTickMs : kIdleTickMs);
}

void RankRunner::handle_signals() {
  while (const auto signal = signals_.next_signal()) {
    if (*signal == SIGUSR1 || *signal == SIGUSR2) forward_signal(*signal);
    if (*signal == SIGTERM || *signal == SIGINT || *signal == SIGHUP) request_stop(*signal, grace_);
  }
}

void RankRunner::handle_run_messages() {
  if (is_run_lost()) return;
  if (run_.has_unsent()) (void)run_.flush();
  const auto messages = run_.receive();
  if (messages.ok()) pending_messages_.insert(pending_messages_.end(), messages->begin(), messages->end());
  for (const net::ControlMessage& message : std::exchange(pending_messages_, {})) {
    const int signal = static_cast<int>(message.integer("signal").value_or(SIGTERM));
    if (!state_.is_stopping()) poll_command_before_message();
    if (message.kind == "stop") {
      if (message.integer("stacks") == 1) write_stacks();
      request_stop(signal, grace_);
    }
    if (message.kind == "kill") request_stop(SIGKILL, Duration::zero());
    if (message.kind == "signal") forward_signal(signal);
    if (message.kind == "leave" && child_) apply(runner_event::Dismissed{});
    if (message.kind == "sample" && is_command_running()) start_node_samples(message);
  }
  if (!messages.ok() || run_.is_closed()) apply(runner_event::RunLost{mono_now() + grace_});
}

bool RankRunner::read_once(Stream& stream) {
  char buffer[65536];
  const ssize_t n = ::read(stream.pipe.get(), buffer, sizeof buffer);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n <= 0) {
    log_.write(stream.log_buffer.finish());
    stream.pipe.reset();
    return false;
  }
  const std::string_view bytes(buffer, static_cast<std::size_t>(n));
  log_.write(stream.log_buffer.feed(bytes, mono_now()));
  if (recent_output_ != nullptr) {
    recent_output_->append(bytes);
    return true;
  }
  metrics_.feed(&stream == &out_ ? 0 : 1, bytes);
  stream.tail.feed(bytes);
  stream.show(bytes, mono_now());
  return true;
}

void RankRunner::pump(Stream& stream) {
  if (stream.pipe && stream.sink.has_capacity()) (void)read_once(stream);
  log_.write(stream.log_buffer.overdue(mono_now()));
  stream.sink.push(stream.line_buffer.overdue(mono_now()));
  stream.sink.flush(mono_now());
}

void RankRunner::poll_command() {
  if (!is_command_running()) return;
  if (const auto exit = child_->poll()) handle_command_exit(*exit);
}

// A command that died before it could receive the run's message died by itself, although its exit is not
// reaped yet or the kernel is still tearing it down. Peers may see its closed sockets before that.
void RankRunner::poll_command_before_message() {
  poll_command();
  if (!is_command_running()) return;
  const auto facts = process_facts(child_->pid());
  if (!facts.ok() || !facts->is_exiting) return;
  pollfd ended{child_->pidfd(), POLLIN, 0};
  ::poll(&ended, 1, kProcessExitMs);
  poll_command();
}

void RankRunner::reap_processes() {
  poll_command();
  const bool has_children =
      reap_orphans(is_command_running() ? std::vector<pid_t>{child_->pid()} : std::vector<pid_t>{});
  if (!has_children) apply(runner_event::DescendantsGone{});
  if (state_.kill_at && mono_now() >= *state_.kill_at) signal_all(SIGKILL);
}

void RankRunner::handle_command_exit(Exit exit) {
  // Its last output belongs into the report; a pipe holds little, so this ends even if children still write.
  for (Stream* stream : {&out_, &err_}) {
    for (int i = 0; i < 32 && stream->pipe && read_once(*stream); ++i) {
    }
  }
  stop_node_samples();  // the end is the signal for a peer to continue them
  const bool has_descendants = reap_orphans({});
  report_end(exit, "", has_descendants);
  apply(runner_event::CommandExited{exit, has_descendants, mono_now() + grace_});
}

// Before a hanging rank is ended: afterwards its place is lost.
void RankRunner::write_stacks() {
  if (!is_command_running() || is_node() || !stack_.empty()) return;
  log_.write("stoker: where the processes are before they are stopped\n");
  stack_ = rank::write_stacks({.processes = descendants(::getpid()),
                               .take_output = [this] { return take_output(); },
                               .write = [this](std::string_view text) { log_.write(text); }},
                              Deadline::after(kStackTime));
}

// What the command prints now. It is for the log alone.
std::string RankRunner::take_output() {
  std::string output;
  recent_output_ = &output;
  const Deadline deadline = Deadline::after(kStackAnswer);
  MonoTime last = mono_now();
  while (!deadline.passed() && mono_now() - last < (output.empty() ? kStackAnswer : kStackPause)) {
    const std::size_t before = output.size();
    pump(out_);
    pump(err_);
    if (output.size() != before)
      last = mono_now();
    else
      ::poll(nullptr, 0, kEndingTickMs);
  }
  recent_output_ = nullptr;
  return output;
}

void RankRunner::report_end(const Exit& exit, std::string start_error, bool has_children) {
  RankExit ended;
  ended.exit = exit;
  ended.start_error = std::move(start_error);
  ended.stopped_by_us = state_.is_stopping();
  ended.time = unix_seconds(RealClock().wall());
  ended.ran_s = Seconds(mono_now() - started_).count();
  ended.where = read_position(beacon_);
  const MemoryKills memory = memory_kills();
  if (exit.signal == SIGKILL && memory.count > memory_before_.count) {
    ended.memory = memory.limit_bytes == 0
                       ? "out of memory"
                       : format("out of memory (cgroup limit {})", rounded(ByteCount{memory.limit_bytes}));
  }
  ended.last_line = explaining_line(err_.tail, out_.tail);
  if (has_children) {
    for (const ProcessFacts& process : descendants(::getpid())) {
      if (process.state == 'Z') continue;
      ended.left_behind += format("{}{} (process {})", ended.left_behind.empty() ? "" : ", ",
                                  printable(process.name), process.pid);
    }
  }
  ended.log_error = log_.error_summary();
  ended.stack = stack_;
  if (!is_run_lost()) (void)run_.send(to_message(ended));
}

void RankRunner::sample() {
  next_sample_ = mono_now() + kSampleEvery;
  if (state_.has_ended() || is_node()) return;
  Sample seen{.time = mono_now()};
  std::vector<pid_t> pids;
  for (const ProcessFacts& process : descendants(::getpid())) {
    pids.push_back(process.pid);
    seen.cpu_s += process.cpu_s;
    seen.is_stopped = seen.is_stopped || process.state == 'T';
  }
  Heartbeat heartbeat;
  if (const auto beacon = record::read_beacon(beacon_); beacon.ok()) seen.beacon = beacon->count;
  watch_.add_sample(seen);
  show_problems(metrics_.poll(pids));
  heartbeat.stopped_s = Seconds(watch_.stopped_for()).count();
  if (seen.is_stopped) heartbeat.stopped_s = std::max(heartbeat.stopped_s, 0.001);
  heartbeat.silent_s = Seconds(watch_.silent_for()).count();
  heartbeat.has_beacon = watch_.has_beacon();
  heartbeat.where = read_position(beacon_);
  if (watch_.silent_for() >= kSocketCheckAfter) heartbeat.blocked_on = unresponsive_peer(pids, kRetransmits);
  if (!is_run_lost() && !run_.has_unsent()) (void)run_.send(to_message(heartbeat));
}

// A run without samples is better than none: every problem is only reported.
void RankRunner::start_node_samples(const net::ControlMessage& message) {
  if (node_sampler_) return;
  const record::Attempt attempt(config_.attempt, 0);
  const auto request = parse_sampling_request(message);
  if (!request.ok()) return print_line(format("no samples: {}", request.error().message()));
  if (auto events = record::EventWriter::open(attempt.sampler_events(request->node.number)); events.ok())
    node_events_ = std::move(*events);
  auto sampler = NodeSampler::start(attempt, *request, node_events_);
  if (sampler.ok()) {
    node_sampler_ = std::move(*sampler);
  } else if (sampler.status().code() != Code::no_space) {  // a full disk is reported for the logs
    print_line(format("no samples of {}: {}", request->node.host, sampler.error().message()));
  }
}

void RankRunner::stop_node_samples() {
  if (!node_sampler_) return;
  node_sampler_->stop();
  report_gpu_faults();
  node_sampler_.reset();
}

void RankRunner::report_gpu_faults() {
  if (!node_sampler_) return;
  for (const std::string& line : node_sampler_->record_faults()) print_line(line);
}

void RankRunner::print_line(const std::string& line) {
  err_.sink.push(line + "\n");
  log_.write(line + "\n");
}

void RankRunner::apply(const RunnerEvent& event) {
  RunnerTransition step = next(std::move(state_), event);
  state_ = std::move(step.state);
  if (step.action == RunnerAction::signal_all) signal_all(step.signal);
  if (step.action == RunnerAction::kill_command) (void)child_->signal(SIGKILL);
}

void RankRunner::request_stop(int signal, Duration grace) {
  apply(runner_event::StopRequested{signal, mono_now() + grace});
}

// "Save and stop" is sent once, whether it comes from Slurm to all processes or from the run's clock.
void RankRunner::forward_signal(int signal) {
  if (signal == SIGUSR1 && is_notified_) return;
  for (const ProcessFacts& process : descendants(::getpid())) {
    // Without a handler, SIGUSR1 would kill the process instead of asking it to stop after a checkpoint.
    if (!handles_signal(process.pid, signal)) continue;
    signal_process(process, signal);
    is_notified_ = is_notified_ || signal == SIGUSR1;
  }
}

void RankRunner::signal_all(int signal) {
  for (const ProcessFacts& process : descendants(::getpid())) signal_process(process, signal);
}

void RankRunner::show_problems(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems) {
    log_.write(format("stoker: {}\n", problem));
    err_.sink.push_line(problem);
  }
}

void RankRunner::finish() {
  for (Stream* stream : {&out_, &err_}) {
    while (stream->pipe && read_once(*stream)) stream->sink.drain();
    log_.write(stream->log_buffer.finish());
    stream->flush_rest();
  }
  show_problems(metrics_.finish());
  err_.sink.drain();
  const Deadline deadline = Deadline::after(2s);
  while (run_.has_unsent() && !run_.is_closed() && !deadline.passed()) {
    pollfd waiting{run_.fd(), POLLOUT, 0};
    ::poll(&waiting, 1, 100);
    (void)run_.flush();
  }
}

}  // namespace

Result<int> run_rank(const RankRunnerOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  STOKER_RETURN_IF_ERROR(become_subreaper());
  STOKER_ASSIGN_OR_RETURN(config, read_rank_config());
  if (config.is_under_srun) {
    STOKER_ASSIGN_OR_RETURN(exit_code, guard_rank());
    if (exit_code) return *exit_code;
    STOKER_RETURN_IF_ERROR(become_subreaper());
  }
  STOKER_ASSIGN_OR_RETURN(signals, SignalFd::open({SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}));
  const record::Attempt attempt(config.attempt, 0);
  const int number = config.place.rank.value;
  STOKER_ASSIGN_OR_RETURN(
      log, LogFile::open(config.role == Role::node ? attempt.torchrun_log(number) : attempt.log(number)));
  const Fd errors = open_run_stderr();
  RankRunnerOptions own = options;
  if (errors) own.err_fd = errors.get();
  RankRunner runner(own, std::move(config), std::move(signals), std::move(log));
  return runner.run();
}

}  // namespace stoker::rank
