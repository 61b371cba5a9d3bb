#include "netcheck/network_check.h"

#include <algorithm>
#include <csignal>
#include <poll.h>

#include "base/stopwatch.h"
#include "netcheck/network_check_internal.h"
#include "netcheck/reported_message.h"

namespace stoker::netcheck {

using namespace std::chrono_literals;
using net::WorldEvent;

namespace {

constexpr int kSessionTickMs = 50;
constexpr int kSteps = 7;
// A rank that delays its peers is reported after this time.
constexpr Duration kNotice = 5s;
// A kernel that has acknowledged nothing for this long is unreachable.
constexpr Duration kUnreachable = 8s;
constexpr Duration kGrace = 5s;

}  // namespace

NetworkCheck::NetworkCheck(const NetworkCheckOptions& options, const CheckListener& listener,
                           net::WorldServer server, WorkerSet workers)
    : options_(options),
      listener_(listener),
      server_(std::move(server)),
      workers_(std::move(workers)),
      begin_(mono_now()),
      step_begin_(begin_) {
  report_.hosts = options.allocates ? std::vector<std::string>() : options.plan.hosts;
  report_.ranks_per_node = options.plan.ranks_per_node();
  report_.scheduler_job = options.plan.scheduler_job;
  report_.gpus_wanted = options.gpus_per_rank;
}

Result<Report> NetworkCheck::run() {
  STOKER_RETURN_IF_ERROR(start());
  if (present().empty()) {
    report_.seconds = Seconds(mono_now() - begin_).count();
    return std::move(report_);
  }
  STOKER_RETURN_IF_ERROR(names());
  STOKER_RETURN_IF_ERROR(facts());
  if (options_.checks_storage) STOKER_RETURN_IF_ERROR(storage());
  STOKER_RETURN_IF_ERROR(connect());
  STOKER_RETURN_IF_ERROR(speed());
  STOKER_RETURN_IF_ERROR(check_all_reduce());
  STOKER_RETURN_IF_ERROR(torch());
  report_.seconds = Seconds(mono_now() - begin_).count();
  return std::move(report_);
}

void NetworkCheck::end() {
  server_.broadcast({"end", {}});
  workers_.end(kGrace);
}

Status NetworkCheck::check_stop() const {
  return listener_.progress.stop_requested() ? cancelled("hello: stopped") : Status();
}

std::string NetworkCheck::host_of(Rank rank) const {
  if (const auto found = report_.ranks.find(rank); found != report_.ranks.end()) return found->second.host;
  const auto node = static_cast<std::size_t>(rank.value / std::max(1, report_.ranks_per_node));
  if (options_.plan.start == rank::StartMethod::local && !report_.hosts.empty()) return report_.hosts[0];
  return node < report_.hosts.size() ? report_.hosts[node] : format("node {}", node);
}

Message NetworkCheck::who(Rank rank) const { return rank_on(rank, host_of(rank)); }

Message NetworkCheck::rank_error(Rank rank, std::string_view why) const {
  return message("rank {} ({}): {}", rank.value, printable(host_of(rank)), reported_message(why));
}

std::vector<Rank> NetworkCheck::present() const {
  std::vector<Rank> ranks;
  for (const Rank rank : joined_) {
    if (!gone_.contains(rank)) ranks.push_back(rank);
  }
  return ranks;
}

void NetworkCheck::finish_step(const std::string& name, bool is_fine, Message text) {
  const MonoTime time = mono_now();
  report_.steps.push_back({name, is_fine ? CheckState::passed : CheckState::failed, std::move(text),
                           Seconds(time - step_begin_).count()});
  step_begin_ = time;
  listener_.progress.report({.done = report_.steps.size(), .total = kSteps, .unit = "steps"});
}

void NetworkCheck::skip_step(const std::string& name, Message why) {
  report_.steps.push_back({name, CheckState::skipped, std::move(why), 0});
  step_begin_ = mono_now();
}

void NetworkCheck::mark_absent(Rank rank, const std::string& step, std::string why) {
  if (!gone_.insert(rank).second) return;
  report_.absent.push_back({rank, host_of(rank), step, std::move(why), false});
}

void NetworkCheck::read_worker_output() {
  for (const WorkerSet::Line& line : workers_.poll_output()) {
    if (line.rank) continue;
    is_granted_ = is_granted_ || line.text.find("has been allocated") != std::string::npos;
    const bool is_queue = line.text.find("queued and waiting") != std::string::npos;
    if (is_queue || line.text.find("error:") != std::string::npos) listener_.note(line.text);
    // "srun: error: Task launch for StepId=1.0 failed on node n3: Communication connection failure"
    constexpr std::string_view kFailed = "failed on node ";
    const std::size_t found = line.text.find(kFailed);
    if (found == std::string::npos) continue;
    const std::string rest = line.text.substr(found + kFailed.size());
    failed_nodes_.emplace(rest.substr(0, rest.find(':')), line.text);
  }
}

// Polls once: returns replies and records all other events.
void NetworkCheck::poll_once(std::vector<net::ControlMessage>* answers, std::vector<Rank>* from) {
  pollfd waiting{server_.fd(), POLLIN, 0};
  ::poll(&waiting, 1, kSessionTickMs);
  read_worker_output();
  for (WorldEvent& event : server_.poll_events()) {
    last_message_[event.rank] = mono_now();
    switch (event.kind) {
      case WorldEvent::Kind::joined: {
        joined_.insert(event.rank);
        reached_[event.rank] = event.hello.address;
        RankFacts& facts = report_.ranks[event.rank];
        facts.rank = event.rank;
        facts.host = net::display_host(event.hello);
        break;
      }
      case WorldEvent::Kind::message:
        if (event.message.kind == "heartbeat" || answers == nullptr) break;
        answers->push_back(std::move(event.message));
        from->push_back(event.rank);
        break;
      case WorldEvent::Kind::left: {
        const std::string step = report_.steps.empty() ? "start" : "answer";
        mark_absent(event.rank, step, "its connection broke (killed, or its node is gone)");
        break;
      }
      case WorldEvent::Kind::refused:
        listener_.note(event.text);
        break;
    }
  }
}

// All processes have ended and ranks are missing: their last output is the reason.
void NetworkCheck::mark_unstarted() {
  for (const Rank rank : server_.registry().missing()) {
    std::string words;
    std::string srun_words;
    for (const WorkerSet::Line& line : workers_.output()) {
      if (line.rank == rank && !line.text.starts_with("  ")) words = line.text;
      if (!line.rank && line.text.starts_with("srun: error")) srun_words = line.text;
    }
    if (const auto failed = failed_nodes_.find(host_of(rank)); failed != failed_nodes_.end())
      words = failed->second;
    if (words.empty()) words = srun_words;
    mark_absent(rank, "start", words.empty() ? "its process exited before it joined" : words);
  }
}

// When a node cannot start its task, srun ends all other tasks: those are not at fault.
void NetworkCheck::mark_side_effects() {
  if (failed_nodes_.empty()) return;
  for (AbsentRank& absent : report_.absent) absent.is_effect = !failed_nodes_.contains(absent.host);
}

// Reports early which ranks are missing.
void NetworkCheck::report_missing_ranks(MonoTime first) {
  if (reported_missing_ || mono_now() - first < kNotice) return;
  reported_missing_ = true;
  Message names;
  for (const Rank rank : server_.registry().missing()) {
    if (!names.empty()) names += ", ";
    names += who(rank);
  }
  listener_.note(message("still waiting for {} ({} of {} have joined)", names, joined_.size(),
                         options_.plan.world_size().value));
}

Status NetworkCheck::start() {
  std::optional<MonoTime> first;  // when the wait for missing ranks began
  while (!server_.registry().is_complete()) {
    poll_once(nullptr, nullptr);
    STOKER_RETURN_IF_ERROR(check_stop());
    if (!joined_.empty()) is_granted_ = true;
    if (!first && (!options_.allocates || is_granted_)) first = mono_now();
    if (workers_.is_over()) {
      mark_unstarted();
      break;
    }
    if (!first && mono_now() - begin_ > options_.queue_limit) {
      return timeout("hello: the nodes were not granted within {} (--queue)",
                     rounded_duration(options_.queue_limit));
    }
    if (first && mono_now() - *first > options_.limit) {
      for (const Rank rank : server_.registry().missing())
        mark_absent(rank, "start",
                    format("did not join within {} (--limit)", rounded_duration(options_.limit)));
      break;
    }
    if (first) report_missing_ranks(*first);
  }
  if (options_.allocates || report_.hosts.empty()) {
    std::map<int, std::string> hosts;
    for (const auto& [rank, facts] : report_.ranks) hosts[rank.value / report_.ranks_per_node] = facts.host;
    for (int node = 0; node < options_.plan.nodes; ++node)
      report_.hosts.push_back(hosts.contains(node) ? hosts[node] : format("node {}", node));
  }
  if (joined_.empty()) {
    const std::string words = report_.absent.empty() ? "" : report_.absent.front().why;
    return unavailable("hello: no rank joined: {}", words.empty() ? "no error was printed" : words);
  }
  mark_side_effects();
  const auto all = static_cast<std::size_t>(options_.plan.world_size().value);
  finish_step("start", joined_.size() == all,
              joined_.size() < all ? message("{} of {} ranks started", joined_.size(), all)
              : all == 1           ? message("1 rank started")
                                   : message("{} ranks started", all));
  return {};
}

// Reports a rank without heartbeat early, and gives it up at once if its kernel does not answer either.
void NetworkCheck::check_silent_ranks(const std::string& step, const std::set<Rank>& open) {
  for (const Rank rank : open) {
    const Duration silent = mono_now() - last_message_[rank];
    if (silent < kNotice) {
      reported_silent_.erase(rank);
      continue;
    }
    if (reported_silent_.insert(rank).second) {
      server_.send(rank, {"still there", {}});
      listener_.note(message("rank {} ({}) has sent no heartbeat for {} ({})", rank.value,
                             printable(host_of(rank)), rounded_duration(silent), reported_message(step)));
    }
    if (silent >= kUnreachable && server_.unacknowledged(rank) > 0) {
      mark_absent(
          rank, step,
          format("sent no heartbeat for {}, and its host acknowledges no packets", rounded_duration(silent)));
    } else if (silent >= options_.limit) {
      mark_absent(rank, step,
                  format("sent no heartbeat for {} (--limit), though its host answers: its process hangs",
                         rounded_duration(silent)));
    }
  }
}

Status NetworkCheck::run_step(const std::string& step, const Requests& requests, Duration limit,
                              const ReplyHandler& on_reply) {
  errors_.clear();
  results_.clear();
  std::set<Rank> open;
  for (const auto& [rank, request] : requests) {
    if (gone_.contains(rank)) continue;
    open.insert(rank);
    last_message_[rank] = mono_now();
    server_.send(rank, request);
  }
  const MonoTime asked = mono_now();
  while (!open.empty()) {
    std::vector<net::ControlMessage> answers;
    std::vector<Rank> from;
    poll_once(&answers, &from);
    STOKER_RETURN_IF_ERROR(check_stop());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const net::ControlMessage& answer = answers[i];
      if (answer.kind != "done") {
        const Status understood = on_reply(from[i], answer);
        if (!understood.ok())
          mark_absent(from[i], step, format("sent an invalid answer: {}", understood.message()));
        continue;
      }
      if (answer.text("of") != requests.begin()->second.kind || open.erase(from[i]) == 0) continue;
      if (!answer.text("error").empty()) errors_[from[i]] = answer.text("error");
      results_[from[i]] = answer;
    }
    check_silent_ranks(step, open);
    if (mono_now() - asked > limit) {
      for (const Rank rank : open)
        mark_absent(rank, step, format("did not finish within {}", rounded_duration(limit)));
    }
    std::erase_if(open, [&](const Rank rank) { return gone_.contains(rank); });
  }
  return {};
}

Result<Report> run_network_check(const NetworkCheckOptions& options, const CheckListener& listener) {
  std::signal(SIGPIPE, SIG_IGN);
  const bool is_remote = options.plan.start == rank::StartMethod::srun;
  STOKER_ASSIGN_OR_RETURN(
      server, net::WorldServer::listen(options.plan.world_size(), random_name(24),
                                       is_remote ? net::ListenScope::network : net::ListenScope::loopback));
  STOKER_ASSIGN_OR_RETURN(workers, WorkerSet::start({.plan = options.plan,
                                                     .srun_options = options.srun_options,
                                                     .environment = options.environment,
                                                     .stoker = options.stoker,
                                                     .invitation = server.invitation(),
                                                     .start_limit = options.limit}));
  NetworkCheck check(options, listener, std::move(server), std::move(workers));
  auto report = check.run();
  check.end();
  return report;
}

}  // namespace stoker::netcheck
