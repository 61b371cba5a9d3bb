#include "rank/group/rank_group.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/stopwatch.h"
#include "rank/checkpoint_presence.h"
#include "rank/process/process_tree.h"
#include "rank/stacks/stacks.h"

namespace stoker::rank {

using namespace std::chrono_literals;
using net::WorldEvent;

namespace {

constexpr Duration kReaderTimeout = 5s;
// A rank ends within the grace time; one that does not gets this much more before it is killed from here.
constexpr Duration kMargin = 3s;
constexpr Duration kHelperLimit = 20s;
constexpr std::size_t kMaxStackLines = 8;
constexpr int kEndingTickMs = 10;
constexpr int kIdleTickMs = 500;

double wall_seconds() { return unix_seconds(RealClock().wall()); }

}  // namespace

RankGroup::RankGroup(const GroupOptions& options, Servers servers, SignalFd signals,
                     record::EventWriter events)
    : options_(options),
      server_(std::move(servers.ranks)),
      nodes_(std::move(servers.nodes)),
      signals_(std::move(signals)),
      events_(std::move(events)),
      folders_(options.attempt.folder()),
      out_(options.out_fd, {.write_timeout = kReaderTimeout}),
      err_(options.err_fd, {.write_timeout = kReaderTimeout}),
      monitors_(static_cast<std::size_t>(options.plan.world_size().value)),
      sampling_(options.plan, options.attempt, options.sample_every, events_) {
  for (int r = 0; r < options_.plan.world_size().value; ++r) {
    const auto node = static_cast<std::size_t>(options_.plan.placement_of(Rank(r)).node);
    statuses_.push_back(
        {.rank = Rank(r), .host = options_.plan.hosts[std::min(node, options_.plan.hosts.size() - 1)]});
  }
}

Result<Ending> RankGroup::run() {
  start_time_ = mono_now();
  const GroupAddresses addresses{server_.invitation(), nodes_ ? nodes_->invitation() : ""};
  if (const Status started = start_ranks(options_, addresses, &starters_); !started.ok()) {
    kill_all();
    return started;
  }
  if (options_.background_task) helper_ = start_background(options_.background_task);
  while (!is_over()) {
    wait();
    handle_signals();
    handle_rank_events();
    handle_node_events();
    for (Starter& starter : starters_) pump(starter);
    out_.flush(mono_now());
    err_.flush(mono_now());
    reap_processes();
    check_deadlines();
  }
  return finish();
}

void RankGroup::wait() {
  std::vector<pollfd> waiting = {{signals_.fd(), POLLIN, 0}, {server_.fd(), POLLIN, 0}};
  if (nodes_) waiting.push_back({nodes_->fd(), POLLIN, 0});
  for (const Starter& starter : starters_) {
    if (!starter.has_ended) waiting.push_back({starter.child.pidfd(), POLLIN, 0});
    if (starter.out && out_.has_capacity()) waiting.push_back({starter.out.get(), POLLIN, 0});
    if (starter.err && err_.has_capacity()) waiting.push_back({starter.err.get(), POLLIN, 0});
  }
  for (const Sink* sink : {&out_, &err_}) {
    if (sink->wants_write()) waiting.push_back({sink->fd(), POLLOUT, 0});
  }
  const bool is_ending = state_.is_stopping() || over_since_;
  const bool has_pending = std::any_of(starters_.begin(), starters_.end(), [](const Starter& s) {
    return s.out_buffer.has_pending() || s.err_buffer.has_pending();
  });
  ::poll(waiting.data(), waiting.size(), is_ending || has_pending ? kEndingTickMs : kIdleTickMs);
}

void RankGroup::handle_signals() {
  while (const auto signal = signals_.next_signal()) {
    if (*signal == SIGUSR1 || *signal == SIGUSR2) {
      forward_signal(*signal);
    }
    if (is_termination_signal(*signal)) handle_termination_signal(*signal);
  }
}

void RankGroup::handle_termination_signal(int signal) {
  const bool was_stopping = state_.is_stopping();
  handle_rank_events();  // earlier exits are unrelated to the signal
  const bool has_reached_a_rank = state_.interrupted_by == 0 && reached_rank_first(signal);
  apply(group_event::Termination{.signal = signal,
                                 .was_stopping = was_stopping,
                                 .has_reached_a_rank = has_reached_a_rank,
                                 .have_all_ended = have_all_ended(),
                                 .time = wall_seconds()});
}

void RankGroup::forward_signal(int signal) {
  net::ControlMessage message{"signal", {}};
  server_.broadcast(message.with("signal", std::int64_t{signal}));
}

// Slurm signals all processes of a job at once. If a rank died of the signal just before this process
// received it, or its `stoker rank` ended it, that is no failure.
bool RankGroup::reached_rank_first(int signal) {
  const MonoTime time = mono_now();
  const bool is_recent = state_.is_stopping() && time - stopping_since_ <= kMargin;
  bool came_first = false;
  for (RankStatus& status : statuses_) {
    if (!status.ended) continue;
    const auto outside = monitor(status.rank).ended_externally_at;
    const bool was_ended = outside && time - *outside <= kMargin;
    const bool died = is_recent && !status.ended->stopped_by_us && !status.detected_failure &&
                      status.ended->exit.shell_code() == 128 + signal;
    if (!was_ended && !died) continue;
    came_first = true;
    status.ended->stopped_by_us = true;
    status.detected_failure.reset();
  }
  return came_first;
}

bool RankGroup::have_all_ended() const {
  return std::all_of(statuses_.begin(), statuses_.end(),
                     [](const RankStatus& status) { return status.ended.has_value(); });
}

void RankGroup::read_once(Fd& pipe, LinePrefixer* marker, LineBuffer& line_buffer, Sink& sink) {
  char buffer[65536];
  const ssize_t n = ::read(pipe.get(), buffer, sizeof buffer);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    sink.push(line_buffer.overdue(mono_now()));
  } else if (n <= 0) {
    sink.push(marker != nullptr ? marker->finish() : line_buffer.finish());
    pipe.reset();
  } else {
    const std::string_view bytes(buffer, static_cast<std::size_t>(n));
    sink.push(marker != nullptr ? marker->feed(bytes) : line_buffer.feed(bytes, mono_now()));
  }
}

void RankGroup::pump(Starter& starter) {
  const bool is_prefixed = starter.rank.value_or(0) != 0;
  if (starter.out && out_.has_capacity()) {
    read_once(starter.out, is_prefixed ? &starter.out_lines : nullptr, starter.out_buffer, out_);
  }
  if (starter.err && err_.has_capacity()) {
    read_once(starter.err, is_prefixed ? &starter.err_lines : nullptr, starter.err_buffer, err_);
  }
}

void RankGroup::reap_processes() {
  std::vector<pid_t> kept;
  for (Starter& starter : starters_) {
    if (starter.has_ended) continue;
    if (const auto exit = starter.child.poll()) {
      starter.has_ended = true;
      handle_rank_events();  // its final messages precede the conclusion from its exit
      handle_node_events();
      handle_starter_exit(starter, *exit);
    } else {
      kept.push_back(starter.child.pid());
    }
  }
  if (helper_ > 0 && ::waitpid(helper_, nullptr, WNOHANG) == helper_) helper_ = -1;
  const bool all_gone = kept.empty();
  if (helper_ > 0) kept.push_back(helper_);
  kept.insert(kept.end(), options_.excluded_pids.begin(), options_.excluded_pids.end());
  (void)reap_orphans(kept);
  const bool all_read =
      std::none_of(starters_.begin(), starters_.end(), [](const Starter& s) { return s.out || s.err; });
  if (all_gone && !over_since_ && all_read) over_since_ = mono_now();
  // A process that outlived its rank may hold a pipe open: kill it first.
  if (all_gone && !all_read) kill_all();
}

void RankGroup::handle_starter_exit(Starter& starter, Exit exit) {
  if (starter.rank) {
    RankStatus& member = status(Rank(*starter.rank));
    if (member.ended || state_.cause == StopCause::refused) return;
    // A peer may have exited because of this rank, and its exit may have arrived first.
    const bool is_sudden = exit.signal == SIGKILL && !has_killed_;
    if (state_.is_stopping() && !is_sudden) return;
    const std::string position = member.where.is_known() ? format(" at {}", to_text(member.where)) : "";
    const std::string how =
        exit.signal == 0 ? format("ended with {}", to_text(exit)) : format("was {}", to_text(exit));
    mark_failed(member, {.what = format("was lost{}: its `stoker rank` {}", position, how),
                         .exit_code = exit.shell_code() == 0 ? 1 : exit.shell_code()});
    // Also for a failure that was detected before: a sudden death explains it.
    member.detected_failure->is_sudden = member.detected_failure->is_loss = is_sudden;
    return;
  }
  const std::string_view what =
      options_.plan.start == StartMethod::srun ? "srun" : "the `stoker rank` of torchrun";
  for (RankStatus& member : statuses_) {
    if (!member.ended && !state_.is_stopping())
      mark_failed(member,
                  {.what = format("was lost: {} ended with {}", what, to_text(exit)), .is_loss = true});
  }
}

void RankGroup::handle_rank_events() {
  for (WorldEvent& event : server_.poll_events()) {
    switch (event.kind) {
      case WorldEvent::Kind::joined:
        handle_join(event);
        break;
      case WorldEvent::Kind::message:
        handle_message(status(event.rank), event.message);
        break;
      case WorldEvent::Kind::refused:
        refuse(event);
        break;
      case WorldEvent::Kind::left:
        // On this machine, the exit of its process is more precise; across hosts there is only the
        // connection.
        if (!starters_.empty() && !starters_.front().rank && !status(event.rank).ended) {
          mark_failed(status(event.rank),
                      {.what = "was lost: its connection broke (node gone, or killed from outside)",
                       .is_loss = true});
        }
        break;
    }
  }
}

void RankGroup::handle_join(const WorldEvent& event) {
  RankStatus& member = status(event.rank);
  member.joined = true;
  member.host = net::display_host(event.hello);
  monitor(event.rank).last_message = mono_now();
  if (server_.registry().is_complete()) apply(group_event::AllJoined{});
}

void RankGroup::refuse(const WorldEvent& event) {
  apply(group_event::Refused{.text = event.text, .exit_code = event.hello.problem.empty() ? 2 : 3});
}

// All ranks have joined: sends the rendezvous address of the training's ranks.
net::ControlMessage RankGroup::welcome_message(const net::RankRegistry& registry) const {
  const net::Hello& first = *registry.find(Rank(0));
  std::string address = "127.0.0.1";
  for (int r = 1; const net::Hello* hello = registry.find(Rank(r)); ++r) {
    if (hello->host == first.host) continue;
    // A remote rank reached this host as `via`; if rank 0 is on another host, its own address works.
    address = first.host == options_.start.supervisor.host ? hello->via : first.address;
    break;
  }
  net::ControlMessage message{"welcome", {}};
  message.with("address", address).with("port", std::int64_t{first.port});
  return message.with("grace_s", Seconds(options_.timeouts.grace).count());
}

void RankGroup::handle_message(RankStatus& member, const net::ControlMessage& message) {
  RankMonitor& watched = monitor(member.rank);
  watched.last_message = mono_now();
  if (message.kind == "started") {
    if (step_.empty()) step_ = message.text("step");
    handle_rank_start(member, message.integer("pid").value_or(0));
  } else if (message.kind == "heartbeat") {
    watched.heartbeat = parse_heartbeat(message);
    member.where = watched.heartbeat.where;
  } else if (message.kind == "ended" && !member.ended) {
    handle_rank_exit(member, parse_rank_exit(message));
  }
}

void RankGroup::handle_rank_start(RankStatus& member, std::int64_t pid) {
  (void)write_event(events_, record::RankStarted{.rank = member.rank.value, .host = member.host, .pid = pid});
  sampling_.handle_rank_start(member.rank, member.host, pid);
}

GroupSampling::Peers RankGroup::sampling_peers() {
  return {
      .send_to_rank = [this](Rank rank, const net::ControlMessage& message) { server_.send(rank, message); },
      .send_to_node =
          [this](int node, const net::ControlMessage& message) {
            if (nodes_) nodes_->send(Rank(node), message);
          }};
}

void RankGroup::handle_rank_exit(RankStatus& member, RankExit ended) {
  record::RankEnded event;
  event.rank = member.rank.value;
  event.host = member.host;
  if (ended.exit.signal != 0) event.signal = ended.exit.signal;
  if (ended.exit.signal == 0) event.exit_code = ended.exit.code;
  event.stopped_by_us = ended.stopped_by_us;
  event.phase = ended.where.phase;
  event.epoch = ended.where.epoch;
  event.step = ended.where.step;
  event.reason = reason(ended);
  event.lost_output = ended.log_error;
  event.stack = ended.stack;
  (void)write_event(events_, event);
  const std::string who = format("rank {} ({})", member.rank.value, printable(member.host));
  if (!ended.left_behind.empty() && !ended.stopped_by_us) {
    log_line(format("{} left processes behind, now killed: {}", who, ended.left_behind));
  }
  if (!ended.log_error.empty()) {
    report_folder_loss(folders_.check_now());  // one reason for the logs of all ranks
    if (lost_folder_.empty()) log_line(format("{}: {}", who, ended.log_error));
  }
  member.ended = std::move(ended);
  sampling_.handle_rank_exit(member.rank, mono_now() - start_time_);
  const int code = member.ended->exit.shell_code();
  if (state_.is_stopping()) return;
  if (member.ended->stopped_by_us) monitor(member.rank).ended_externally_at = mono_now();
  if (code == kStoppedAfterCheckpoint) {
    if (!checkpoint_stop_) checkpoint_stop_ = mono_now() + options_.timeouts.grace;
  } else if (member.ended->stopped_by_us) {
    // The signal came from outside: Slurm signals every process of a step (scancel, preemption), and so may a
    // user.
    mark_failed(member, {.what = format("was terminated externally: {}", reason(*member.ended)),
                         .exit_code = code == 0 ? 128 + SIGTERM : code});
  } else if (code != 0) {
    apply(group_event::RankFailed{describe_failure(member)});
  }
}

void RankGroup::check_deadlines() {
  const MonoTime time = mono_now();
  // After this process was stopped (Ctrl-Z), older messages of the ranks are only read now.
  const bool was_away = last_turn_ != MonoTime() && time - last_turn_ > 3s;
  last_turn_ = time;
  for (RankStatus& member : statuses_) {
    if (was_away && monitor(member.rank).last_message) monitor(member.rank).last_message = time;
    if (state_.phase == GroupPhase::running && !member.ended) check_running(member);
  }
  if (state_.phase == GroupPhase::starting && time - start_time_ > options_.timeouts.start) {
    for (Rank rank : server_.registry().missing()) {
      mark_failed(status(rank), {.what = format("did not join within {} (timeouts.start)",
                                                rounded_duration(options_.timeouts.start)),
                                 .exit_code = 3});
    }
  }
  check_time_limit();
  report_folder_loss(folders_.check(time));
  end_nodes();
  if (checkpoint_stop_ && time > *checkpoint_stop_ && !have_all_ended())
    apply(group_event::CheckpointOverdue{});
  if (kill_at_ && (time > *kill_at_ || remaining_unresponsive())) kill_all();
  if (!state_.is_stopping()) sampling_.start_when_due(time - start_time_, sampling_peers());
  for (const std::string& line : sampling_.take_lines()) log_line(line);
}

// A command that can save is notified before the time limit, so that no work is lost.
void RankGroup::check_time_limit() {
  if (!options_.deadline || state_.is_stopping() || have_all_ended()) return;
  const double left_s = *options_.deadline - wall_seconds();
  if (left_s < 0) {
    apply(group_event::TimeLimit{.text = options_.deadline_text, .time = wall_seconds()});
  } else if (left_s < Seconds(options_.notice).count()) {
    apply(group_event::SaveDue{});
  }
}

// The ranks continue: their work is worth more than its records.
void RankGroup::report_folder_loss(const std::optional<FolderLoss>& loss) {
  if (!loss) return;
  lost_folder_ = describe_loss(*loss);
  log_line(lost_folder_);
  if (const std::string cure = undo_command(*loss); !cure.empty()) log_line(format("  try: {}", cure));
}

// A hanging rank ignores SIGTERM: there is no need to wait.
bool RankGroup::remaining_unresponsive() const {
  bool has_unresponsive = false;
  for (const RankStatus& status : statuses_) {
    if (status.ended || !status.joined) continue;
    if (!monitors_[static_cast<std::size_t>(status.rank.value)].is_unresponsive) return false;
    has_unresponsive = true;
  }
  return has_unresponsive;
}

void RankGroup::check_running(RankStatus& member) {
  MonitorResult result = check_rank(
      member, monitor(member.rank),
      {.now = mono_now(),
       .timeouts = options_.timeouts,
       .is_peer_stopped = is_peer_stopped(member.rank),
       .are_all_silent = are_peers_silent(member.rank, statuses_, monitors_, options_.timeouts.stall),
       .send_probe = [&] { server_.send(member.rank, net::ControlMessage{"still there", {}}); },
       .has_unacknowledged_data = [&] { return server_.unacknowledged(member.rank) > 0; },
       .is_stopped_here = [&] { return is_stopped_here(member.rank); },
       .host_at = [&](std::string_view address) { return host_at(address); }});
  for (const std::string& note : result.notes) log_line(note);
  if (result.failure) mark_failed(member, std::move(*result.failure));
}

// Whether a different rank is stopped by a signal, or sends no heartbeat: its peers wait for it.
bool RankGroup::is_peer_stopped(Rank rank) const {
  return std::any_of(statuses_.begin(), statuses_.end(), [&](const RankStatus& status) {
    const RankMonitor& peer = monitors_[static_cast<std::size_t>(status.rank.value)];
    return status.rank.value != rank.value && status.joined && !status.ended &&
           (peer.heartbeat.stopped_s > 0 || peer.reported_unheard);
  });
}

// A hanging rank, or one that may hang and is ended for another reason: its stacks show the place.
bool RankGroup::has_hanging_rank() const {
  const bool is_ended_early = state_.cause == StopCause::time_limit || state_.cause == StopCause::interrupted;
  return std::any_of(statuses_.begin(), statuses_.end(), [&](const RankStatus& status) {
    if (status.detected_failure && status.detected_failure->is_hang) return true;
    const double silent_s = monitors_[static_cast<std::size_t>(status.rank.value)].heartbeat.silent_s;
    return is_ended_early && !status.ended && silent_s >= Seconds(kLongSilence).count();
  });
}

// On this machine, /proc shows whether a signal stopped the `stoker rank`.
bool RankGroup::is_stopped_here(Rank rank) const {
  for (const Starter& starter : starters_) {
    if (starter.rank != rank.value) continue;
    const auto facts = process_facts(starter.child.pid());
    return facts.ok() && facts->state == 'T';
  }
  return false;
}

// The rank and host for this address.
std::string RankGroup::host_at(std::string_view address) const {
  for (const RankStatus& status : statuses_) {
    const net::Hello* hello = server_.registry().find(status.rank);
    if (hello != nullptr && hello->address == address)
      return format("rank {} ({})", status.rank.value, printable(status.host));
  }
  return printable(address);
}

void RankGroup::mark_failed(RankStatus& member, DetectedFailure failure) {
  if (member.detected_failure) return;
  failure.time = wall_seconds();
  member.detected_failure = std::move(failure);
  apply(group_event::RankFailed{describe_failure(member)});
}

void RankGroup::handle_node_events() {
  if (!nodes_) return;
  for (const WorldEvent& event : nodes_->poll_events()) {
    switch (event.kind) {
      case WorldEvent::Kind::joined:
        if (nodes_->registry().is_complete() && !state_.is_stopping())
          nodes_->broadcast(welcome_message(nodes_->registry()));
        break;
      case WorldEvent::Kind::message:
        if (event.message.kind == "ended") handle_node_exit(event.rank.value, parse_rank_exit(event.message));
        break;
      case WorldEvent::Kind::refused:
        refuse(event);
        break;
      case WorldEvent::Kind::left:
        break;  // its ranks report separately; ranks that never join are reported as missing
    }
  }
}

void RankGroup::handle_node_exit(int node, const RankExit& ended) {
  handle_rank_events();  // the final messages of its ranks come first
  for (RankStatus& member : statuses_) {
    if (member.ended || state_.is_stopping() || options_.plan.placement_of(member.rank).node != node)
      continue;
    const std::string words = ended.last_line.empty() ? "" : ": " + ended.last_line;
    const int code = ended.exit.shell_code();
    mark_failed(member, {.what = format("{}: its node's torchrun exited: {}{}",
                                        member.joined ? "was lost" : "never started", reason(ended), words),
                         .exit_code = code == 0 ? 1 : code});
  }
}

// torchrun takes seconds to exit after its last rank, and minutes if it waits for another node. Before the
// rendezvous, it is ended with all its processes.
void RankGroup::end_nodes() {
  if (!nodes_ || has_ended_nodes_) return;
  const bool are_over = have_all_ended();
  if (!are_over && state_.phase != GroupPhase::aborting) return;
  has_ended_nodes_ = true;
  net::ControlMessage stop{"stop", {}};
  nodes_->broadcast(are_over ? net::ControlMessage{"leave", {}} : stop.with("signal", std::int64_t{SIGTERM}));
}

void RankGroup::apply(const GroupEvent& event) {
  GroupTransition step = next(std::move(state_), event);
  state_ = std::move(step.state);
  switch (step.action) {
    case GroupAction::none:
      break;
    case GroupAction::welcome:
      server_.broadcast(welcome_message(server_.registry()));
      break;
    case GroupAction::request_save:
      forward_signal(SIGUSR1);
      break;
    case GroupAction::stop:
      stop_all(step.signal);
      break;
    case GroupAction::kill:
      server_.broadcast(net::ControlMessage{"kill", {}});
      if (nodes_) nodes_->broadcast(net::ControlMessage{"kill", {}});
      kill_at_ = std::min(kill_at_.value_or(MonoTime::max()), mono_now() + Duration(500ms));
      break;
  }
}

void RankGroup::stop_all(int signal) {
  stopping_since_ = mono_now();
  (void)write_event(events_, record::Stopping{.reason = state_.reason});
  net::ControlMessage message{"stop", {}};
  const bool wants_stacks = has_hanging_rank();
  server_.broadcast(message.with("signal", std::int64_t{signal}).with("stacks", std::int64_t{wants_stacks}));
  // Ranks that have not joined receive no messages yet. srun forwards the signal to its tasks.
  for (Starter& starter : starters_) {
    const bool has_joined = starter.rank && status(Rank(*starter.rank)).joined;
    if (!has_joined && state_.phase == GroupPhase::aborting) (void)starter.child.signal(SIGTERM);
  }
  kill_at_ = mono_now() + options_.timeouts.grace + kMargin + (wants_stacks ? kStackTime : Duration::zero());
}

// Kills every remaining descendant.
void RankGroup::kill_all() {
  has_killed_ = true;
  for (const Starter& starter : starters_) was_srun_killed_ |= !starter.rank && !starter.has_ended;
  for (const ProcessFacts& process : own_processes()) signal_process(process, SIGKILL);
}

// All descendants except the excluded children, the helper, and their descendants: programs that the helper
// runs (git, Python) belong to no rank.
std::vector<ProcessFacts> RankGroup::own_processes() const {
  std::vector<ProcessFacts> all = descendants(::getpid());
  std::vector<pid_t> roots = options_.excluded_pids;
  if (helper_ > 0) roots.push_back(helper_);
  for (const pid_t root : roots) {
    std::vector<pid_t> excluded = {root};
    for (const ProcessFacts& process : descendants(root)) excluded.push_back(process.pid);
    std::erase_if(all, [&](const ProcessFacts& process) {
      return std::find(excluded.begin(), excluded.end(), process.pid) != excluded.end();
    });
  }
  return all;
}

// Reaps ended processes.
bool RankGroup::has_processes_left() const {
  if (options_.excluded_pids.empty()) return reap_orphans({});
  (void)reap_orphans(options_.excluded_pids);
  const std::vector<ProcessFacts> left = own_processes();
  return std::any_of(left.begin(), left.end(),
                     [](const ProcessFacts& process) { return process.state != 'Z'; });
}

bool RankGroup::is_over() const {
  return over_since_ && (helper_ <= 0 || mono_now() - *over_since_ > kHelperLimit);
}

Result<Ending> RankGroup::finish() {
  sampling_.stop();
  for (const std::string& line : sampling_.take_lines()) log_line(line);
  kill_all();
  const Deadline deadline = Deadline::after(5s);
  if (helper_ > 0) (void)::kill(-helper_, SIGKILL);
  helper_ = -1;
  while (has_processes_left() && !deadline.passed()) {
    kill_all();
    ::poll(nullptr, 0, 5);
  }
  // Without its srun, Slurm keeps a step's tasks on other nodes running until the job ends.
  if (was_srun_killed_ && !step_.empty() && options_.end_step) options_.end_step(step_);
  report_folder_loss(folders_.check_now());
  for (const std::string& line : describe_stacks(statuses_, kMaxStackLines)) log_line(line);
  const Ending ending = conclude(state_, statuses_,
                                 {.deadline_text = options_.deadline_text,
                                  .has_checkpoint = [&] { return has_any_checkpoint(options_.environment); },
                                  .lost_folder = lost_folder_});
  if (ending.exit_code != 0 || !options_.defers_done_event) (void)write_event(events_, to_event(ending));
  out_.drain();
  err_.drain();
  return ending;
}

}  // namespace stoker::rank
