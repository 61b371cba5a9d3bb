#include "rank/hello/session.h"

#include <algorithm>
#include <csignal>
#include <poll.h>

#include "base/stopwatch.h"
#include "rank/hello/ladder.h"
#include "rank/hello/said.h"

namespace stoker::rank::hello {

using namespace std::chrono_literals;
using net::Message;
using net::WorldEvent;

namespace {

constexpr int kSessionTickMs = 50;
constexpr int kRungs = 7;
// Who keeps the others waiting is told after so long.
constexpr Duration kNotice = 5s;
// What a kernel has not acknowledged for so long does not reach it.
constexpr Duration kUnreachable = 8s;
constexpr Duration kGrace = 5s;

}  // namespace

Ladder::Ladder(const SessionOptions& options, const Audience& audience, net::WorldServer server, Crew crew)
    : options_(options),
      words_(options.words),
      audience_(audience),
      server_(std::move(server)),
      crew_(std::move(crew)),
      begin_(mono_now()),
      rung_begin_(begin_) {
  report_.hosts = options.allocates ? std::vector<std::string>() : options.plan.hosts;
  report_.ranks_per_node = options.plan.ranks_per_node();
  report_.scheduler_job = options.plan.scheduler_job;
  report_.gpus_wanted = options.gpus_per_rank;
  report_.words = options.words;
}

Result<Report> Ladder::climb() {
  RETURN_IF_ERROR(start());
  if (present().empty()) {
    report_.seconds = Seconds(mono_now() - begin_).count();
    return std::move(report_);
  }
  RETURN_IF_ERROR(names());
  RETURN_IF_ERROR(facts());
  if (options_.looks_at_storage) RETURN_IF_ERROR(storage());
  RETURN_IF_ERROR(connect());
  RETURN_IF_ERROR(speed());
  RETURN_IF_ERROR(together());
  RETURN_IF_ERROR(torch());
  report_.seconds = Seconds(mono_now() - begin_).count();
  return std::move(report_);
}

void Ladder::end() {
  server_.broadcast({"end", {}});
  crew_.end(kGrace);
}

Status Ladder::check_stop() const {
  return audience_.progress.stop_requested() ? cancelled("hello: stopped") : Status();
}

std::string Ladder::host_of(Rank rank) const {
  if (const auto found = report_.ranks.find(rank); found != report_.ranks.end()) return found->second.host;
  const auto node = static_cast<std::size_t>(rank.value / std::max(1, report_.ranks_per_node));
  if (options_.plan.start == Start::here && !report_.hosts.empty()) return report_.hosts[0];
  return node < report_.hosts.size() ? report_.hosts[node] : format("node {}", node);
}

std::string Ladder::who(Rank rank) const { return rank_on(rank, host_of(rank), words_); }

std::string Ladder::told(Rank rank, std::string_view why) const {
  return words_.say("rank {} ({}): {}", rank.value, printable(host_of(rank)), in_words(why, words_));
}

std::vector<Rank> Ladder::present() const {
  std::vector<Rank> ranks;
  for (const Rank rank : joined_) {
    if (!gone_.contains(rank)) ranks.push_back(rank);
  }
  return ranks;
}

void Ladder::pass(const std::string& name, bool is_fine, std::string text) {
  const MonoTime time = mono_now();
  report_.rungs.push_back({name, is_fine ? RungState::passed : RungState::failed, std::move(text),
                           Seconds(time - rung_begin_).count()});
  rung_begin_ = time;
  audience_.progress.report({.done = report_.rungs.size(), .total = kRungs, .unit = "rungs"});
}

void Ladder::skip(const std::string& name, std::string why) {
  report_.rungs.push_back({name, RungState::skipped, std::move(why), 0});
  rung_begin_ = mono_now();
}

void Ladder::give_up(Rank rank, const std::string& rung, std::string why) {
  if (!gone_.insert(rank).second) return;
  report_.absent.push_back({rank, host_of(rank), rung, std::move(why), false});
}

void Ladder::hear_crew() {
  for (const Crew::Line& line : crew_.look()) {
    if (line.rank) continue;
    granted_ = granted_ || line.text.find("has been allocated") != std::string::npos;
    const bool is_queue = line.text.find("queued and waiting") != std::string::npos;
    if (is_queue || line.text.find("error:") != std::string::npos) audience_.note(line.text);
    // "srun: error: Task launch for StepId=1.0 failed on node n3: Communication connection failure"
    constexpr std::string_view kFailed = "failed on node ";
    const std::size_t found = line.text.find(kFailed);
    if (found == std::string::npos) continue;
    const std::string rest = line.text.substr(found + kFailed.size());
    failed_nodes_.emplace(rest.substr(0, rest.find(':')), line.text);
  }
}

// One look at everything: answers are handed out, what else happened is noted down.
void Ladder::turn(std::vector<Message>* answers, std::vector<Rank>* from) {
  pollfd waiting{server_.fd(), POLLIN, 0};
  ::poll(&waiting, 1, kSessionTickMs);
  hear_crew();
  for (WorldEvent& event : server_.take()) {
    heard_[event.rank] = mono_now();
    switch (event.kind) {
      case WorldEvent::Kind::joined: {
        joined_.insert(event.rank);
        reached_[event.rank] = event.hello.address;
        RankFacts& facts = report_.ranks[event.rank];
        facts.rank = event.rank;
        facts.host = net::place_name(event.hello);
        break;
      }
      case WorldEvent::Kind::message:
        if (event.message.kind == "beat" || answers == nullptr) break;
        answers->push_back(std::move(event.message));
        from->push_back(event.rank);
        break;
      case WorldEvent::Kind::left: {
        const std::string rung = report_.rungs.empty() ? "start" : "answer";
        give_up(event.rank, rung, "its connection broke (killed, or its node is gone)");
        break;
      }
      case WorldEvent::Kind::refused:
        audience_.note(event.text);
        break;
    }
  }
}

// All processes have ended and ranks are missing: what they said last is why.
void Ladder::lose_starters() {
  for (const Rank rank : server_.roster().missing()) {
    std::string words;
    std::string srun_words;
    for (const Crew::Line& line : crew_.said()) {
      if (line.rank == rank && !line.text.starts_with("  ")) words = line.text;
      if (!line.rank && line.text.starts_with("srun: error")) srun_words = line.text;
    }
    if (const auto failed = failed_nodes_.find(host_of(rank)); failed != failed_nodes_.end())
      words = failed->second;
    if (words.empty()) words = srun_words;
    give_up(rank, "start", words.empty() ? "its process ended before it came" : words);
  }
}

// When a node cannot start its task, srun ends the tasks of all others: those are not to blame.
void Ladder::tell_cause_from_effect() {
  if (failed_nodes_.empty()) return;
  for (Absent& absent : report_.absent) absent.is_effect = !failed_nodes_.contains(absent.host);
}

// A word early on who is missing; the reason, if it can be told by now.
void Ladder::look_for_missing(MonoTime first) {
  if (told_missing_ || mono_now() - first < kNotice) return;
  told_missing_ = true;
  std::vector<std::string> names;
  for (const Rank rank : server_.roster().missing()) names.push_back(who(rank));
  audience_.note(words_.say("still waiting for {} ({} of {} are here)", ::stoker::join(names, ", "),
                            joined_.size(), options_.plan.world_size().value));
}

Status Ladder::start() {
  std::optional<MonoTime> first;  // since when a missing rank keeps others waiting
  while (!server_.roster().is_complete()) {
    turn(nullptr, nullptr);
    RETURN_IF_ERROR(check_stop());
    if (!joined_.empty()) granted_ = true;
    if (!first && (!options_.allocates || granted_)) first = mono_now();
    if (crew_.is_over()) {
      lose_starters();
      break;
    }
    if (!first && mono_now() - begin_ > options_.queue_limit) {
      return timeout("hello: the nodes were not granted within {} (--queue)",
                     rounded_duration(options_.queue_limit));
    }
    if (first && mono_now() - *first > options_.limit) {
      for (const Rank rank : server_.roster().missing())
        give_up(rank, "start", format("did not come within {} (--limit)", rounded_duration(options_.limit)));
      break;
    }
    if (first) look_for_missing(*first);
  }
  if (options_.allocates || report_.hosts.empty()) {
    std::map<int, std::string> hosts;
    for (const auto& [rank, facts] : report_.ranks) hosts[rank.value / report_.ranks_per_node] = facts.host;
    for (int node = 0; node < options_.plan.nodes; ++node)
      report_.hosts.push_back(hosts.contains(node) ? hosts[node] : format("node {}", node));
  }
  if (joined_.empty()) {
    const std::string words = report_.absent.empty() ? "" : report_.absent.front().why;
    return unavailable("hello: no rank came: {}", words.empty() ? "none has said why" : words);
  }
  tell_cause_from_effect();
  const auto all = static_cast<std::size_t>(options_.plan.world_size().value);
  pass("start", joined_.size() == all,
       joined_.size() < all ? words_.say("{} of {} ranks came", joined_.size(), all)
       : all == 1           ? words_.say("1 rank came")
                            : words_.say("{} ranks came", all));
  return {};
}

// Who gives no sign is named soon; given up at once where his kernel does not answer either.
void Ladder::look_for_silence(const std::string& rung, const std::set<Rank>& open) {
  for (const Rank rank : open) {
    const Duration silent = mono_now() - heard_[rank];
    if (silent < kNotice) {
      told_silent_.erase(rank);
      continue;
    }
    if (told_silent_.insert(rank).second) {
      server_.send(rank, {"still there", {}});
      audience_.note(words_.say("rank {} ({}) gives no sign since {} ({})", rank.value,
                                printable(host_of(rank)), rounded_duration(silent), in_words(rung, words_)));
    }
    if (silent >= kUnreachable && server_.unacknowledged(rank) > 0) {
      give_up(rank, rung,
              format("gave no sign for {}, and its host acknowledges no packet", rounded_duration(silent)));
    } else if (silent >= options_.limit) {
      give_up(rank, rung,
              format("gave no sign for {} (--limit), though its host answers: its process stands still",
                     rounded_duration(silent)));
    }
  }
}

Status Ladder::ask(const std::string& rung, const Questions& questions, Duration limit, const Hear& hear) {
  errors_.clear();
  results_.clear();
  std::set<Rank> open;
  for (const auto& [rank, question] : questions) {
    if (gone_.contains(rank)) continue;
    open.insert(rank);
    heard_[rank] = mono_now();
    server_.send(rank, question);
  }
  const MonoTime asked = mono_now();
  while (!open.empty()) {
    std::vector<Message> answers;
    std::vector<Rank> from;
    turn(&answers, &from);
    RETURN_IF_ERROR(check_stop());
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const Message& answer = answers[i];
      if (answer.kind != "done") {
        const Status understood = hear(from[i], answer);
        if (!understood.ok()) give_up(from[i], rung, format("answers nonsense: {}", understood.message()));
        continue;
      }
      if (answer.text("of") != questions.begin()->second.kind || open.erase(from[i]) == 0) continue;
      if (!answer.text("error").empty()) errors_[from[i]] = answer.text("error");
      results_[from[i]] = answer;
    }
    look_for_silence(rung, open);
    if (mono_now() - asked > limit) {
      for (const Rank rank : open)
        give_up(rank, rung, format("was not done after {}", rounded_duration(limit)));
    }
    std::erase_if(open, [&](const Rank rank) { return gone_.contains(rank); });
  }
  return {};
}

Result<Report> run_session(const SessionOptions& options, const Audience& audience) {
  std::signal(SIGPIPE, SIG_IGN);
  const bool is_remote = options.plan.start == Start::srun;
  OK_OR_RETURN(server, net::WorldServer::listen(options.plan.world_size(), random_name(24),
                                                is_remote ? net::Reach::network : net::Reach::this_host));
  OK_OR_RETURN(crew, Crew::start({.plan = options.plan,
                                  .srun_options = options.srun_options,
                                  .environment = options.environment,
                                  .stoker = options.stoker,
                                  .invitation = server.invitation(),
                                  .start_limit = options.limit}));
  Ladder ladder(options, audience, std::move(server), std::move(crew));
  auto report = ladder.climb();
  ladder.end();
  return report;
}

}  // namespace stoker::rank::hello
