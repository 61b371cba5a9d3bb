#include "rank/group/group.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rank/environment.h"
#include "rank/group/rank_group.h"
#include "rank/process/process_tree.h"
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

MonoTime now() { return RealClock().mono(); }

}  // namespace

RankGroup::RankGroup(const GroupOptions& options, net::WorldServer server, SignalFd signals,
                     record::EventWriter events)
    : options_(options),
      server_(std::move(server)),
      signals_(std::move(signals)),
      events_(std::move(events)),
      out_(options.out_fd, {.patience = kReaderPatience}),
      err_(options.err_fd, {.patience = kReaderPatience}),
      follow_(static_cast<std::size_t>(options.plan.world_size().value)) {
  for (int r = 0; r < options_.plan.world_size().value; ++r) {
    const auto node = static_cast<std::size_t>(r / std::max(1, options_.plan.ranks_per_node));
    stories_.push_back(
        {.rank = Rank(r), .host = options_.plan.hosts[std::min(node, options_.plan.hosts.size() - 1)]});
  }
}

Result<Ending> RankGroup::run() {
  start_time_ = now();
  RETURN_IF_ERROR(start_all());
  start_helper();
  while (!is_over()) {
    wait();
    hear_signals();
    hear_world();
    for (Starter& starter : starters_) pump(starter);
    out_.flush(now());
    err_.flush(now());
    look_after_processes();
    keep_deadlines();
  }
  return finish();
}

Status RankGroup::start_all() {
  const Plan& plan = options_.plan;
  Environment base = options_.environment;
  set_variable(base, kWorldVariable, server_.invitation());
  set_variable(base, kStartVariable, std::to_string(std::max<std::int64_t>(1, options_.timeouts.start / 1s)));
  set_variable(base, kCpusVariable, std::to_string(plan.cpus_per_rank));
  std::vector<std::string> argv = {options_.stoker.string(), "rank", "--"};
  argv.insert(argv.end(), options_.command.begin(), options_.command.end());
  if (plan.start == Start::srun) {
    for (const std::string& name : slurm::variables_to_drop()) unset_variable(base, name);
    if (plan.cpus_per_rank > 0) set_variable(base, "SRUN_CPUS_PER_TASK", std::to_string(plan.cpus_per_rank));
    OK_OR_RETURN(srun, start_one(slurm::srun_arguments({plan.world_size(), plan.nodes, plan.ranks_per_node,
                                                        plan.cpus_per_rank, argv}),
                                 base, std::nullopt));
    starters_.push_back(std::move(srun));
    return {};
  }
  for (int r = 0; r < plan.world_size().value; ++r) {
    Environment environment = base;
    set_variable(environment, kPlaceVariable,
                 to_text(Place{Rank(r), plan.world_size(), r, plan.world_size().value, 0}));
    auto starter = start_one(argv, std::move(environment), r);
    if (!starter.ok()) {
      kill_all();
      return std::move(starter).error();
    }
    starters_.push_back(std::move(*starter));
  }
  return {};
}

Result<Starter> RankGroup::start_one(std::vector<std::string> argv, Environment environment,
                                     std::optional<int> rank) {
  OK_OR_RETURN(out, Pipe::create());
  OK_OR_RETURN(err, Pipe::create());
  Command command;
  command.argv = std::move(argv);
  command.environment = std::move(environment);
  command.directory = options_.working_directory;
  command.stdout_fd = out.write.get();
  command.stderr_fd = err.write.get();
  command.group = ::stoker::Group::own;
  command.parent_death_signal = SIGTERM;
  OK_OR_RETURN(child, Child::spawn(command));
  ::fcntl(out.read.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err.read.get(), F_SETFL, O_NONBLOCK);
  const std::string prefix = format("[{}] ", rank.value_or(0));
  return Starter{std::move(child),  rank, std::move(out.read), std::move(err.read), LineMarker(prefix),
                 LineMarker(prefix)};
}

void RankGroup::start_helper() {
  if (!options_.beside) return;
  const pid_t parent = ::getpid();
  helper_ = ::fork();
  if (helper_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::setpgid(0, 0);
  (void)!::nice(10);
  options_.beside();
  ::_exit(0);
}

void RankGroup::wait() {
  std::vector<pollfd> waiting = {{signals_.fd(), POLLIN, 0}, {server_.fd(), POLLIN, 0}};
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
    if (*signal != SIGINT && *signal != SIGTERM && *signal != SIGHUP) continue;
    if (interrupted_by_ == 0 && came_to_a_rank_first(*signal)) {
      interrupted_by_ = *signal;
      continue;
    }
    if (!stopping_.empty()) {
      server_.broadcast(net::Message{"kill", {}});
      kill_at_ = std::min(kill_at_.value_or(MonoTime::max()), now() + Duration(500ms));
      continue;
    }
    interrupted_by_ = *signal;
    stop_all(*signal, format("interrupted by {}", signal_name(*signal)));
  }
}

void RankGroup::pass_on(int signal) {
  net::Message message{"signal", {}};
  server_.broadcast(message.with("signal", std::int64_t{signal}));
}

// Slurm signals all processes of a job at once: that a rank died of it a moment before we heard of it is no
// failure.
bool RankGroup::came_to_a_rank_first(int signal) const {
  if (stopping_.empty() || now() - stopping_since_ > kMargin) return false;
  return std::any_of(stories_.begin(), stories_.end(), [&](const RankStory& story) {
    return story.ended && !story.ended->stopped_by_us && story.ended->exit.shell_code() == 128 + signal;
  });
}

void RankGroup::read_once(Fd& pipe, LineMarker* marker, LineKeeper& keeper, Sink& sink) {
  char buffer[65536];
  const ssize_t n = ::read(pipe.get(), buffer, sizeof buffer);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
    sink.push(keeper.overdue(now()));
  } else if (n <= 0) {
    sink.push(marker != nullptr ? marker->finish() : keeper.finish());
    pipe.reset();
  } else {
    const std::string_view bytes(buffer, static_cast<std::size_t>(n));
    sink.push(marker != nullptr ? marker->feed(bytes) : keeper.feed(bytes, now()));
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
      starter_ended(starter, *exit);
    } else {
      kept.push_back(starter.child.pid());
    }
  }
  if (helper_ > 0 && ::waitpid(helper_, nullptr, WNOHANG) == helper_) helper_ = -1;
  const bool all_gone = kept.empty();
  if (helper_ > 0) kept.push_back(helper_);
  (void)reap_orphans(kept);
  const bool all_read =
      std::none_of(starters_.begin(), starters_.end(), [](const Starter& s) { return s.out || s.err; });
  if (all_gone && !over_since_ && all_read) over_since_ = now();
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
    if (member.judgement) member.judgement->is_sudden = is_sudden;
    return;
  }
  for (RankStory& member : stories_) {
    if (!member.ended && stopping_.empty())
      accuse(member, format("was lost: srun ended with {}", to_text(exit)), 1);
  }
}

void RankGroup::stop_all(int signal, std::string why) {
  if (!stopping_.empty()) return;
  stopping_ = std::move(why);
  stopping_since_ = now();
  (void)write_event(events_, record::Stopping{.reason = stopping_});
  net::Message message{"stop", {}};
  server_.broadcast(message.with("signal", std::int64_t{signal}));
  // Those that have not joined know no messages yet. srun passes the signal on to its tasks.
  for (Starter& starter : starters_) {
    const bool hears_us = starter.rank && story(Rank(*starter.rank)).joined;
    if (!hears_us && !welcomed_) (void)starter.child.signal(SIGTERM);
  }
  kill_at_ = now() + options_.timeouts.grace + kMargin;
}

// Whatever is left below us, whoever its parent was.
void RankGroup::kill_all() {
  has_killed_ = true;
  for (const Starter& starter : starters_) was_srun_killed_ |= !starter.rank && !starter.has_ended;
  for (const ProcessFacts& process : descendants(::getpid())) {
    if (process.pid != helper_) signal_process(process, SIGKILL);
  }
}

bool RankGroup::is_over() const {
  return over_since_ && (helper_ <= 0 || now() - *over_since_ > kHelperLimit);
}

Ending RankGroup::conclude() const {
  if (!refusal_.empty()) {
    return {.outcome = record::Outcome::failed, .exit_code = refusal_code_, .cause = refusal_};
  }
  Ending ending = judge(stories_);
  if (ending.exit_code == kStoppedAfterCheckpoint) {
    if (interrupted_by_ != 0) {
      ending.cause = format("interrupted by {}, stopped after a checkpoint", signal_name(interrupted_by_));
    } else if (out_of_time_) {
      ending.cause = format("{}, stopped after a checkpoint", options_.deadline_text);
    } else if (notified_) {
      ending.cause = format("stopped after a checkpoint before {}", options_.deadline_text);
    }
  } else if (interrupted_by_ != 0) {
    ending = {.outcome = record::Outcome::stopped,
              .exit_code = 128 + interrupted_by_,
              .cause = format("interrupted by {}", signal_name(interrupted_by_)),
              .others = describe_others(stories_, std::nullopt)};
  } else if (out_of_time_) {
    ending = {.outcome = record::Outcome::stopped,
              .exit_code = 1,
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
  while (reap_orphans({}) && !deadline.passed()) {
    kill_all();
    ::poll(nullptr, 0, 5);
  }
  // Without its srun Slurm leaves a step's tasks on other nodes alone until the job ends.
  if (was_srun_killed_ && !step_.empty() && options_.end_step) options_.end_step(step_);
  Ending ending = conclude();
  record::AttemptEnded event;
  event.outcome = ending.outcome;
  event.exit_code = ending.exit_code;
  event.first_rank = ending.first_rank;
  event.reason = ending.cause;
  (void)write_event(events_, event);
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
  OK_OR_RETURN(events, record::EventWriter::open(options.attempt.node_events(0)));
  GroupOptions own = options;
  own.start.supervisor = record::this_process();
  RETURN_IF_ERROR(write_event(events, own.start));
  RankGroup group(own, std::move(server), std::move(signals), std::move(events));
  return group.run();
}

}  // namespace stoker::rank
