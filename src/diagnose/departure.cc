#include "diagnose/departure.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <re2/re2.h>

#include "diagnose/line_signs.h"
#include "diagnose/matches.h"
#include "diagnose/survived.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

// The last lines of a rank, the latest first.
struct RankEnd {
  const LogScan* log = nullptr;
  std::uint64_t line = 0;
  std::vector<std::string> lines;
};

using RankEnds = std::map<int, RankEnd>;

// The last lines of all ranks: in a log of several ranks, before the first line about a lost peer.
RankEnds ends_of_ranks(const std::vector<LogScan>& logs) {
  RankEnds ends;
  for (const LogScan& log : logs) {
    if (log.is_record) continue;
    const RankSurvey& survey = log.result.survey;
    const bool is_of_one_rank = log.rank >= 0 && survey.last.size() <= 1;
    if (is_of_one_rank && log.result.last.line > 0)
      ends[log.rank] = {&log, log.result.last.line, {log.result.last.text}};
    if (is_of_one_rank) continue;
    for (const auto& [rank, lines] : survey.last) ends[rank] = {&log, survey.line.at(rank), lines};
  }
  return ends;
}

// Ranks that report the loss of a peer: by the rule of the cause, or, if a connection broke, by any.
std::set<int> reporters_of(const std::vector<LogScan>& logs, const FailureRule& cause) {
  std::set<int> ranks;
  for (const LogScan& log : logs) {
    for (const Hit& hit : log.result.hits) {
      const int rank = Suspect{&log, &hit}.rank();
      const bool counts = cause.failure_class == FailureClass::hang ? hit.rule->name == cause.name
                                                                    : is_among(hit.rule->name, kLostPeer);
      if (rank >= 0 && counts && !log.is_record) ranks.insert(rank);
    }
  }
  return ranks;
}

// The number of the last step, where the line has it: "step 260/263".
bool is_last_step(std::string_view line) {
  static const RE2 kOf(R"((?i)\b(?:epoch|step|iter\w*|batch)\W{0,4}(\d+) ?/ ?(\d+)\b)");
  std::string at, all;
  return RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), kOf, &at, &all) && at == all;
}

bool is_end_of_work(std::string_view line) {
  return reports_success(line) || reports_amount(line) || is_last_step(line);
}

bool is_shutdown(std::string_view line) {
  static const RE2 kEnd(R"((?i)\bdestroy\w* (?:the )?process.?group|\bshutting down\b)");
  return matches(line, kEnd);
}

// The log with one hit of that rule, at the place of the evidence.
LogScan conclusion(const LogScan& log, std::string_view rule, std::uint64_t line, const std::string& text) {
  const auto found = std::find_if(failure_rules().begin(), failure_rules().end(),
                                  [&](const FailureRule* each) { return each->name == rule; });
  LogScan made{.name = log.name, .rank = -1, .is_record = false, .result = {}};
  made.result.hits.push_back({.rule = *found, .line = line, .begin = line, .text = text});
  return made;
}

// The line without its time, rank and level.
std::string without_prefix(std::string_view line) {
  static const RE2 kPrefix(R"(^.{0,80}?\b(?:DEBUG|INFO|WARNING|ERROR)\b[\]\s|:-]*)");
  re2::StringPiece rest(line.data(), line.size());
  if (!RE2::Consume(&rest, kPrefix) || rest.empty()) return std::string(line);
  return std::string(rest.data(), rest.size());
}

LogScan conclusion_of_rank(int rank, const RankEnd& end, const FailureRule& cause) {
  auto finish = std::find_if(end.lines.begin(), end.lines.end(), is_end_of_work);
  if (finish == end.lines.end()) finish = std::find_if(end.lines.begin(), end.lines.end(), is_shutdown);
  const bool is_finished = finish != end.lines.end();
  const std::string_view rule = is_finished                                 ? kRankFinishedFirst
                                : cause.failure_class == FailureClass::hang ? kRankDidNotJoin
                                                                            : kRankLeftFirst;
  const std::string& text = is_finished ? *finish : end.lines.front();
  LogScan made = conclusion(*end.log, rule, end.line, text);
  made.result.hits.front().groups[0] = without_prefix(text);
  made.result.hits.front().rank = rank;
  return made;
}

// The only rank that does not report the loss of a peer, if all of its peers do.
std::optional<LogScan> silent_rank(const std::vector<LogScan>& logs, const FailureRule& cause) {
  const RankEnds ends = ends_of_ranks(logs);
  const std::set<int> reporters = reporters_of(logs, cause);
  std::vector<int> silent;
  for (const auto& [rank, end] : ends) {
    if (!reporters.contains(rank)) silent.push_back(rank);
  }
  if (silent.size() != 1 || reporters.empty()) return std::nullopt;
  const int highest = std::max(silent.front(), *reporters.rbegin());
  if (static_cast<int>(reporters.size()) != highest) return std::nullopt;
  return conclusion_of_rank(silent.front(), ends.at(silent.front()), cause);
}

// The first task that a launcher reports as ended, unless that task reports the loss of a peer itself.
std::optional<LogScan> first_task(const LogScan& log, const Hit& cause, const std::set<int>& reporters) {
  for (const TaskExit& each : log.result.task_ends) {
    const bool is_of_reporter = each.task >= 0 && reporters.contains(each.task);
    // Slurm ends the remaining tasks after it has cancelled their step.
    if (cause.rule->name == "step-cancelled" && each.line > cause.line) return std::nullopt;
    if (is_of_reporter) continue;
    static const RE2 kEnd(R"(^(?:srun: error: (\S+): |.*?: )?(?:task|rank)s? ([\d,-]+): (.*)$)");
    LogScan made = conclusion(log, kTaskEndedFirst, each.line, each.text);
    auto& groups = made.result.hits.front().groups;
    if (!RE2::PartialMatch(each.text, kEnd, &groups[0], &groups[1], &groups[2])) return std::nullopt;
    return made;
  }
  return std::nullopt;
}

// Processes without a line in a log in which most others have one.
std::optional<LogScan> missing_rank(const LogScan& log, const Hit& cause) {
  const RankSurvey& survey = log.result.survey;
  std::set<int> seen;
  for (const auto& [rank, lines] : survey.last) seen.insert(rank);
  for (const Hit& hit : log.result.hits) {
    if (hit.rank >= 0) seen.insert(hit.rank);
  }
  std::int64_t size = survey.world_size, joined = 0;
  if (cause.rule->name == "clients-missing") {
    (void)parse_number(cause.groups[2], &size);
    (void)parse_number(cause.groups[1], &joined);
  }
  constexpr int kMostNamed = 16;
  const auto most = std::min<std::int64_t>(size / 2, kMostNamed);
  std::string missing;
  int count = 0, only = -1;
  for (int rank = 0; rank < size && count <= most; ++rank) {
    if (seen.contains(rank)) continue;
    missing += format("{}{}", missing.empty() ? "" : ", ", rank);
    only = rank;
    ++count;
  }
  const bool is_beyond = !seen.empty() && *seen.rbegin() >= size;
  if (count == 0 || count > most || is_beyond || static_cast<std::int64_t>(seen.size()) < joined)
    return std::nullopt;
  LogScan made = conclusion(log, kProcessMissing, cause.line, cause.text);
  Hit& hit = made.result.hits.front();
  hit.groups[count == 1 ? 0 : 1] = missing;
  hit.groups[2] = format("{}", size);
  if (count == 1) hit.rank = only;
  return made;
}

bool is_after_cancelled_step(const LogScan& log, const Hit& cause) {
  return cause.rule->name == "srun-killed" && !log.result.task_ends.empty() &&
         log.result.task_ends.front().line < cause.line &&
         std::any_of(
             log.result.hits.begin(), log.result.hits.end(),
             [&](const Hit& hit) { return hit.rule->name == "step-cancelled" && hit.line < cause.line; });
}

}  // namespace

std::optional<LogScan> departure_of(const std::vector<LogScan>& logs, const Choice& choice) {
  if (!choice.cause || choice.cause->log->is_record) return std::nullopt;
  const LogScan& log = *choice.cause->log;
  const Hit& cause = *choice.cause->hit;
  if (is_among(cause.rule->name, kNotAllConnected)) return missing_rank(log, cause);
  if (cause.rule->name == "step-cancelled" || is_after_cancelled_step(log, cause))
    return first_task(log, cause, {});
  if (!is_among(cause.rule->name, kLostPeer)) return std::nullopt;
  auto silent = silent_rank(logs, *cause.rule);
  if (silent && silent->result.hits.front().rule->name == kRankFinishedFirst) return silent;
  if (cause.rule->failure_class == FailureClass::effect) {
    if (auto task = first_task(log, cause, reporters_of(logs, *cause.rule))) return task;
  }
  return silent;
}

std::optional<Suspect> failure_before_timeout(const std::vector<LogScan>& logs, const Choice& choice) {
  if (!choice.cause || choice.cause->log->is_record) return std::nullopt;
  const Suspect& cause = *choice.cause;
  if (!is_among(cause.hit->rule->name, kNotAllConnected) && cause.hit->rule->name != "store-key-missing")
    return std::nullopt;
  for (const LogScan& log : logs) {
    if (log.is_record || &log == cause.log) continue;
    for (const Hit& hit : log.result.hits) {
      const FailureClass failure_class = hit.rule->failure_class;
      const bool is_error = failure_class == FailureClass::root || failure_class == FailureClass::general;
      const bool is_of_start = is_among(hit.rule->name, kNotAllConnected) ||
                               is_among(hit.rule->name, kLostPeer) ||
                               hit.text.find("torch.distributed") != std::string::npos;
      const bool is_later = hit.time && cause.hit->time && *hit.time > *cause.hit->time;
      const Suspect suspect{&log, &hit};
      if (is_error && !is_of_start && !is_later && suspect.rank() != cause.rank() && !is_reported(hit) &&
          !is_lone_warning(hit) && !is_harmless(suspect))
        return suspect;
    }
  }
  return std::nullopt;
}

}  // namespace stoker::diagnose
