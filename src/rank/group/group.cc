#include "rank/group/group.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "base/stopwatch.h"
#include "rank/group/rank_group.h"
#include "rank/process/process_tree.h"
#include "rank/saved.h"
#include "record/state.h"

namespace stoker::rank {

using namespace std::chrono_literals;

namespace {

constexpr Duration kReaderPatience = 5s;
// A rank ends itself within the grace time; one that does not gets this much more before it is killed from
// here.
constexpr Duration kMargin = 3s;
constexpr Duration kHelperLimit = 20s;
constexpr int kEndingTickMs = 10;
constexpr int kIdleTickMs = 500;

}  // namespace

RankGroup::RankGroup(const GroupOptions& options, Servers servers, SignalFd signals,
                     record::EventWriter events)
    : options_(options),
      server_(std::move(servers.ranks)),
      nodes_(std::move(servers.nodes)),
      signals_(std::move(signals)),
      events_(std::move(events)),
      out_(options.out_fd, {.patience = kReaderPatience}),
      err_(options.err_fd, {.patience = kReaderPatience}),
      follow_(static_cast<std::size_t>(options.plan.world_size().value)) {
  for (int r = 0; r < options_.plan.world_size().value; ++r) {
    const auto node = static_cast<std::size_t>(options_.plan.place_of(Rank(r)).node);
    stories_.push_back(
        {.rank = Rank(r), .host = options_.plan.hosts[std::min(node, options_.plan.hosts.size() - 1)]});
  }
}

Result<Ending> RankGroup::run() {
  start_time_ = mono_now();
  RETURN_IF_ERROR(start_all());
  start_helper();
  while (!is_over()) {
    wait();
    hear_signals();
    hear_world();
    hear_nodes();
    for (Starter& starter : starters_) pump(starter);
    out_.flush(mono_now());
    err_.flush(mono_now());
    look_after_processes();
    keep_deadlines();
  }
  return finish();
}

void RankGroup::wait() {
  std::vector<pollfd> waiting = {{signals_.fd(), POLLIN, 0}, {server_.fd(), POLLIN, 0}};
  if (nodes_) waiting.push_back({nodes_->fd(), POLLIN, 0});
  for (const Starter& starter : starters_) {
    if (!starter.has_ended) waiting.push_back({starter.child.pidfd(), POLLIN, 0});
    if (starter.out && out_.has_room()) waiting.push_back({starter.out.get(), POLLIN, 0});
    if (starter.err && err_.has_room()) waiting.push_back({starter.err.get(), POLLIN, 0});
  }
  for (const Sink* sink : {&out_, &err_}) {
    if (sink->wants_write()) waiting.push_back({sink->fd(), POLLOUT, 0});
  }
  const bool is_ending = !stopping_.empty() || over_since_;
  const bool is_keeping = std::any_of(starters_.begin(), starters_.end(), [](const Starter& s) {
    return s.out_keeper.is_keeping() || s.err_keeper.is_keeping();
  });
  ::poll(waiting.data(), waiting.size(), is_ending || is_keeping ? kEndingTickMs : kIdleTickMs);
}

void RankGroup::hear_signals() {
  while (const auto signal = signals_.take()) {
    if (*signal == SIGUSR1 || *signal == SIGUSR2) {
      pass_on(*signal);
    }
    if (asks_for_the_end(*signal)) asked_to_end(*signal);
  }
}

void RankGroup::asked_to_end(int signal) {
  const bool was_stopping = !stopping_.empty();
  hear_world();  // ends that came before it are no answer to it
  const bool is_first = !std::exchange(was_asked_to_end_, true);
  const bool is_known = interrupted_by_ == 0 && came_to_a_rank_first(signal);
  if (is_known) interrupted_by_ = signal;
  const bool is_decided = have_all_ended();
  if (stopping_.empty() && !is_decided) {
    interrupted_by_ = signal;
    ended_at_ = unix_seconds(RealClock().wall());
    return stop_all(signal, format("interrupted by {}", signal_name(signal)));
  }
  // What they stop for already is the same, or was not known when it was sent.
  const bool is_new_to_us = !was_stopping && !stopping_.empty();
  if (is_known || is_new_to_us || (is_decided && is_first)) return;
  server_.broadcast(net::Message{"kill", {}});
  if (nodes_) nodes_->broadcast(net::Message{"kill", {}});
  kill_at_ = std::min(kill_at_.value_or(MonoTime::max()), mono_now() + Duration(500ms));
}

void RankGroup::pass_on(int signal) {
  net::Message message{"signal", {}};
  server_.broadcast(message.with("signal", std::int64_t{signal}));
}

// Slurm signals all processes of a job at once: that a rank died of it a moment before we heard of it is no
// failure, nor that its `stoker rank` has ended it.
bool RankGroup::came_to_a_rank_first(int signal) {
  const MonoTime time = mono_now();
  const bool is_recent = !stopping_.empty() && time - stopping_since_ <= kMargin;
  bool came_first = false;
  for (RankStory& story : stories_) {
    if (!story.ended) continue;
    const auto outside = follow(story.rank).ended_outside;
    const bool was_ended = outside && time - *outside <= kMargin;
    const bool died = is_recent && !story.ended->stopped_by_us && !story.judgement &&
                      story.ended->exit.shell_code() == 128 + signal;
    if (!was_ended && !died) continue;
    came_first = true;
    story.ended->stopped_by_us = true;
    story.judgement.reset();
  }
  return came_first;
}

bool RankGroup::have_all_ended() const {
  return std::all_of(stories_.begin(), stories_.end(),
                     [](const RankStory& story) { return story.ended.has_value(); });
}

void RankGroup::read_once(Fd& pipe, LineMarker* marker, LineKeeper& keeper, Sink& sink) {
  char buffer[65536];
  const ssize_t n = ::read(pipe.get(), buffer, sizeof buffer);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    sink.push(keeper.overdue(mono_now()));
  } else if (n <= 0) {
    sink.push(marker != nullptr ? marker->finish() : keeper.finish());
    pipe.reset();
  } else {
    const std::string_view bytes(buffer, static_cast<std::size_t>(n));
    sink.push(marker != nullptr ? marker->feed(bytes) : keeper.feed(bytes, mono_now()));
  }
}

void RankGroup::pump(Starter& starter) {
  const bool is_marked = starter.rank.value_or(0) != 0;
  if (starter.out && out_.has_room()) {
    read_once(starter.out, is_marked ? &starter.out_lines : nullptr, starter.out_keeper, out_);
  }
  if (starter.err && err_.has_room()) {
    read_once(starter.err, is_marked ? &starter.err_lines : nullptr, starter.err_keeper, err_);
  }
}

void RankGroup::look_after_processes() {
  std::vector<pid_t> kept;
  for (Starter& starter : starters_) {
    if (starter.has_ended) continue;
    if (const auto exit = starter.child.poll()) {
      starter.has_ended = true;
      hear_world();  // what it said last comes before what we conclude from its end
      hear_nodes();
      starter_ended(starter, *exit);
    } else {
      kept.push_back(starter.child.pid());
    }
  }
  if (helper_ > 0 && ::waitpid(helper_, nullptr, WNOHANG) == helper_) helper_ = -1;
  const bool all_gone = kept.empty();
  if (helper_ > 0) kept.push_back(helper_);
  if (options_.spared > 0) kept.push_back(options_.spared);
  (void)reap_orphans(kept);
  const bool all_read =
      std::none_of(starters_.begin(), starters_.end(), [](const Starter& s) { return s.out || s.err; });
  if (all_gone && !over_since_ && all_read) over_since_ = mono_now();
  // A process that outlived its rank may hold a pipe open: it goes first.
  if (all_gone && !all_read) kill_all();
}

void RankGroup::starter_ended(Starter& starter, Exit exit) {
  if (starter.rank) {
    RankStory& member = story(Rank(*starter.rank));
    if (member.ended || !refusal_.empty()) return;
    // Another rank may have left for the want of this one, and been heard of before.
    const bool is_sudden = exit.signal == SIGKILL && !has_killed_;
    if (!stopping_.empty() && !is_sudden) return;
    accuse(
        member,
        format("was lost{}: its `stoker rank` {}",
               member.where.is_known() ? format(" at {}", to_text(member.where)) : "",
               exit.signal == 0 ? format("ended with {}", to_text(exit)) : format("was {}", to_text(exit))),
        exit.shell_code() == 0 ? 1 : exit.shell_code());
    if (member.judgement) member.judgement->is_sudden = member.judgement->is_loss = is_sudden;
    return;
  }
  const std::string_view what = options_.plan.start == Start::srun ? "srun" : "the `stoker rank` of torchrun";
  for (RankStory& member : stories_) {
    if (!member.ended && stopping_.empty())
      accuse(member, format("was lost: {} ended with {}", what, to_text(exit)), 1, Loss::yes);
  }
}

void RankGroup::stop_all(int signal, std::string why) {
  if (!stopping_.empty()) return;
  stopping_ = std::move(why);
  stopping_since_ = mono_now();
  (void)write_event(events_, record::Stopping{.reason = stopping_});
  net::Message message{"stop", {}};
  server_.broadcast(message.with("signal", std::int64_t{signal}));
  // Those that have not joined know no messages yet. srun passes the signal on to its tasks.
  for (Starter& starter : starters_) {
    const bool hears_us = starter.rank && story(Rank(*starter.rank)).joined;
    if (!hears_us && !welcomed_) (void)starter.child.signal(SIGTERM);
  }
  kill_at_ = mono_now() + options_.timeouts.grace + kMargin;
}

// Whatever is left below us, whoever its parent was.
void RankGroup::kill_all() {
  has_killed_ = true;
  for (const Starter& starter : starters_) was_srun_killed_ |= !starter.rank && !starter.has_ended;
  for (const ProcessFacts& process : ours()) signal_process(process, SIGKILL);
}

// All below us but the spared child, the helper, and what is below these: programs that the helper asks (git,
// Python) are no rank's.
std::vector<ProcessFacts> RankGroup::ours() const {
  std::vector<ProcessFacts> all = descendants(::getpid());
  for (const pid_t root : {options_.spared, helper_}) {
    if (root <= 0) continue;
    std::vector<pid_t> spared = {root};
    for (const ProcessFacts& process : descendants(root)) spared.push_back(process.pid);
    std::erase_if(all, [&](const ProcessFacts& process) {
      return std::find(spared.begin(), spared.end(), process.pid) != spared.end();
    });
  }
  return all;
}

// Reaps what has ended.
bool RankGroup::is_anything_left() const {
  if (options_.spared <= 0) return reap_orphans({});
  (void)reap_orphans({options_.spared});
  const std::vector<ProcessFacts> left = ours();
  return std::any_of(left.begin(), left.end(),
                     [](const ProcessFacts& process) { return process.state != 'Z'; });
}

bool RankGroup::is_over() const {
  return over_since_ && (helper_ <= 0 || mono_now() - *over_since_ > kHelperLimit);
}

Ending RankGroup::conclude() const {
  if (!refusal_.empty()) {
    return {.outcome = record::Outcome::failed, .exit_code = refusal_code_, .cause = refusal_};
  }
  Ending ending = judge(stories_);
  if (ended_at_ && has_failed_before(stories_, *ended_at_)) return ending;
  if (ending.outcome == record::Outcome::stopped) {
    StopFacts stop{.has_checkpoint = has_saved(options_.environment)};
    if (interrupted_by_ != 0) {
      stop.asked_by = format("interrupted by {}", signal_name(interrupted_by_));
    } else if (out_of_time_) {
      stop.asked_by = options_.deadline_text;
    } else if (notified_) {
      stop.before = options_.deadline_text;
    }
    ending.cause = describe_stop(stories_, stop);
  } else if (interrupted_by_ != 0) {
    ending = {.outcome = record::Outcome::stopped,
              .exit_code = 128 + interrupted_by_,
              .cause = format("interrupted by {}", signal_name(interrupted_by_)),
              .others = describe_others(stories_, std::nullopt)};
  } else if (out_of_time_) {
    ending = {.outcome = record::Outcome::stopped,
              .exit_code = record::kOutOfTime,
              .cause = options_.deadline_text,
              .others = describe_others(stories_, std::nullopt)};
  }
  return ending;
}

Result<Ending> RankGroup::finish() {
  sampler_.reset();
  kill_all();
  const Deadline deadline = Deadline::after(5s);
  if (helper_ > 0) (void)::kill(-helper_, SIGKILL);
  helper_ = -1;
  while (is_anything_left() && !deadline.passed()) {
    kill_all();
    ::poll(nullptr, 0, 5);
  }
  // Without its srun Slurm leaves a step's tasks on other nodes alone until the job ends.
  if (was_srun_killed_ && !step_.empty() && options_.end_step) options_.end_step(step_);
  Ending ending = conclude();
  ending.interrupted_by = interrupted_by_;
  if (ending.exit_code != 0 || !options_.has_more_to_do) (void)write_event(events_, to_event(ending));
  out_.drain();
  err_.drain();
  return ending;
}

Result<Ending> run_group(const GroupOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  RETURN_IF_ERROR(become_subreaper());
  // Blocked before anything is started: a Ctrl-C from now on is ours to handle.
  OK_OR_RETURN(signals, SignalFd::open({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}));
  const net::Reach reach = options.plan.start == Start::srun ? net::Reach::network : net::Reach::this_host;
  OK_OR_RETURN(server, net::WorldServer::listen(options.plan.world_size(), random_name(24), reach));
  std::optional<net::WorldServer> nodes;
  if (options.plan.has_torchrun) {
    OK_OR_RETURN(listening, net::WorldServer::listen(WorldSize(options.plan.nodes), random_name(24), reach));
    nodes = std::move(listening);
  }
  OK_OR_RETURN(events, record::EventWriter::open(options.attempt.node_events(0)));
  GroupOptions own = options;
  own.start.supervisor = record::this_process();
  if (!own.has_begun) RETURN_IF_ERROR(write_event(events, own.start));
  RankGroup group(own, {std::move(server), std::move(nodes)}, std::move(signals), std::move(events));
  return group.run();
}

}  // namespace stoker::rank
