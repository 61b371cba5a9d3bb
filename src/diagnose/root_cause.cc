#include "diagnose/root_cause.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <re2/re2.h>

#include "diagnose/exception_chain.h"
#include "diagnose/finality.h"
#include "diagnose/later_end.h"
#include "diagnose/machine_fault.h"
#include "diagnose/matches.h"
#include "diagnose/script_sequence.h"
#include "diagnose/specific_cause.h"
#include "diagnose/survived.h"

namespace stoker::diagnose {
namespace {

// Records of a rank that was lost together with its step: they do not show which rank failed first.
constexpr std::array<std::string_view, 2> kLosses = {"rank-connection-broke", "rank-step-ended"};
// Ends without a reason, which may have come from processes that waited for ever.
constexpr std::array<std::string_view, 6> kEndsOfHang = {
    "timeout-command", "timeout-exit", "time-limit", "dump-of-hang", "interrupted", "aborted-while-waiting"};
// Failures of JAX's coordination, after which it reports that another task failed although none did.
constexpr std::array<std::string_view, 2> kNoCoordination = {"jax-not-registered", "jax-no-coordinator"};
constexpr std::string_view kPeerOfJax = "jax-peer-failed";

// The first hit of the log's end: walks back from the last hit until a long gap.
std::size_t first_final_hit(const std::vector<Hit>& hits, std::uint64_t lines) {
  if (hits.empty() || lines - std::min(lines, hits.back().line) > kLongPause) return hits.size();
  std::size_t first = hits.size() - 1;
  while (first > 0 && hits[first].begin - std::min(hits[first].begin, hits[first - 1].line) <= kLongPause)
    --first;
  return first;
}

// Which of two hits is earlier: by time if both have one, then by line within one log.
bool is_before(const Suspect& a, const Suspect& b, std::optional<int> first_rank) {
  if (a.log == b.log && a.log->is_record) return false;
  if (first_rank && (a.rank() == *first_rank) != (b.rank() == *first_rank)) return a.rank() == *first_rank;
  if (a.hit->time && b.hit->time && *a.hit->time != *b.hit->time) return *a.hit->time < *b.hit->time;
  if (a.log == b.log) return a.hit->line < b.hit->line;
  // A log line is more specific than a record about it.
  if (a.log->is_record != b.log->is_record) return b.log->is_record;
  return false;
}

std::optional<Suspect> earliest(const std::vector<Suspect>& suspects,
                                std::initializer_list<FailureClass> classes, std::optional<int> first_rank) {
  std::optional<Suspect> first;
  for (const Suspect& each : suspects) {
    const bool counts =
        std::find(classes.begin(), classes.end(), each.hit->rule->failure_class) != classes.end();
    if (counts && (!first || is_before(each, *first, first_rank))) first = each;
  }
  return first;
}

// The latest hit that can be a cause.
std::optional<Suspect> last_cause(const std::vector<Suspect>& suspects) {
  std::optional<Suspect> last;
  for (const Suspect& each : suspects) {
    if (is_cause(each) && (!last || each.log != last->log || each.hit->line > last->hit->line)) last = each;
  }
  return last;
}

void split_final_hits(const LogScan& log, std::vector<Suspect>& end, std::vector<Suspect>& earlier) {
  const std::vector<Hit>& hits = log.result.hits;
  const std::size_t first = log.is_record ? 0 : first_final_hit(hits, log.result.lines);
  const std::uint64_t attempt = start_of_last_attempt(log.result);
  for (std::size_t i = 0; i < hits.size(); ++i)
    (i < first || hits[i].line < attempt ? earlier : end).push_back({&log, &hits[i]});
}

// Hits that their log calls harmless, as a last resort: those on which no long text follows.
std::optional<Suspect> last_harmless(const std::vector<Suspect>& harmless) {
  if (harmless.empty()) return std::nullopt;
  const Suspect& last = harmless.back();
  const std::uint64_t most = last.hit->level == LogLevel::info ? kAfterWarning : kFinalLines;
  return quiet_lines(last, end_of(*last.log)) > most ? std::nullopt : std::optional(last);
}

bool is_early_end(const Suspect& suspect) {
  return suspect.log->is_record && suspect.hit->rule->name == kEndedEarly;
}

// Whether the first failed rank only lost a peer.
bool lost_a_peer(const std::optional<Suspect>& cause, const std::vector<Suspect>& end,
                 std::optional<int> first_rank) {
  if (cause && (is_cause(*cause) || cause->hit->rule->failure_class == FailureClass::outside)) return false;
  return std::any_of(end.begin(), end.end(), [&](const Suspect& each) {
    return first_rank && each.rank() == *first_rank && is_among(each.hit->rule->name, kLostPeer);
  });
}

// Moves the matching elements to the result, after evaluating the predicate for all of them.
template <typename Predicate>
std::vector<Suspect> extract_if(std::vector<Suspect>& from, const Predicate& predicate) {
  std::vector<Suspect> taken, kept;
  for (const Suspect& each : from) (predicate(each) ? taken : kept).push_back(each);
  from = std::move(kept);
  return taken;
}

// Whether the line states a cause, and not only where a library failed.
bool states_cause(const Hit& hit) {
  if (hit.rule->fits_several) return false;
  if (hit.rule->name == "library-assertion") return !hit.groups[0].empty();
  if (hit.rule->name != "python-exception") return true;
  const std::string& text = hit.groups[1];
  for (const std::string_view part : {"NoneType", "INTERNAL: ", "nternal error"}) {
    if (text.find(part) != std::string::npos) return false;
  }
  return true;
}

// The loss that was not a number long before an assertion about its result failed.
std::optional<Suspect> nan_before(const Suspect& cause) {
  if (!cause.hit->rule->name.starts_with("assertion")) return std::nullopt;
  for (const Hit& hit : cause.log->result.hits) {
    if (hit.rule->name == kLossIsNan && hit.line < cause.hit->line) return Suspect{cause.log, &hit};
  }
  return std::nullopt;
}

// Whether a line states the cause, and the log shows that it ended the program.
bool is_stated(const Suspect& cause, const std::vector<Suspect>& end) {
  return states_cause(*cause.hit) && !may_be_survived(cause) && is_final(cause) && !is_disputed(cause, end);
}

// Replaces a cause that other lines explain.
void refine(const std::vector<Suspect>& end, const std::vector<Suspect>& forks, Choice& choice) {
  if (choice.cause) choice.cause = detail_of_crash(*choice.cause, end);
  if (const auto nan = choice.cause ? nan_before(*choice.cause) : std::nullopt) {
    choice.cause = nan;
    choice.is_sure = false;
  }
  if (!forks.empty() && (!choice.cause || is_among(choice.cause->hit->rule->name, kEndsOfHang))) {
    choice.cause = forks.front();
    choice.is_sure = false;
  }
}

// Adds hits of the same rule and the consequences.
void add_related(const std::vector<Suspect>& end, Choice& choice) {
  for (const Suspect& each : end) {
    if (!choice.cause || each.hit == choice.cause->hit) continue;
    if (each.hit->rule == choice.cause->hit->rule) {
      choice.same_rule.push_back(each);
    } else if (each.hit->rule->failure_class == FailureClass::effect ||
               each.hit->rule->failure_class == FailureClass::hang) {
      const bool is_untrue =
          each.hit->rule->name == kPeerOfJax && is_among(choice.cause->hit->rule->name, kNoCoordination);
      const bool is_earlier = each.log == choice.cause->log && is_cause(*choice.cause) &&
                              each.hit->line < choice.cause->hit->begin;
      if (is_untrue || is_earlier || each.hit->rule->name == kForkOfThreads) continue;
      choice.consequences.push_back(each);
    }
  }
}

// Whether the program reported how it continued after the error, and did not only repeat it.
bool was_worked_around(const Suspect& cause) {
  static const RE2 kAttempts(R"((?i)\b(?:attempts?|retr\w+|tries)\b)");
  const auto& own = cause.log->result.own_error;
  if (cause.log->is_record || !own || matches(own->text, kAttempts)) return false;
  const std::vector<LineAfter>& after = cause.log->result.after;
  return cause.hit->is_retried || cause.hit->is_fallback ||
         std::any_of(after.begin(), after.end(), [&](const LineAfter& each) {
           return each.kind == AfterError::fallback && each.rank == cause.hit->rank &&
                  each.line > cause.hit->line;
         });
}

// The line in which a program reports its failure itself, if its end alone is known.
std::optional<Suspect> own_error(const std::vector<LogScan>& logs, std::optional<int> first_rank,
                                 const std::optional<Suspect>& cause) {
  static constexpr std::array<std::string_view, 6> kBareEnds = {
      "command-failed",          "mpi-abort",           "snakemake-rule-failed",
      "nextflow-process-failed", "parallel-job-failed", "make-failed"};
  const bool is_bare = cause && is_among(cause->hit->rule->name, kBareEnds) && cause->hit->groups[3].empty();
  if (cause && !is_bare && !was_worked_around(*cause)) return std::nullopt;
  std::optional<Suspect> own;
  for (const LogScan& each : logs) {
    if (each.is_record || !each.result.own_error || (cause && cause->log != &each)) continue;
    const Suspect suspect{&each, &*each.result.own_error};
    if (cause && !is_bare && (!each.result.is_own_verdict || suspect.hit->line <= cause->hit->line)) continue;
    if (!own || (first_rank && suspect.rank() == *first_rank)) own = suspect;
  }
  return own;
}

std::optional<Suspect> select_cause(const std::vector<Suspect>& end, std::optional<int> first_rank) {
  auto cause = earliest(end, {FailureClass::root, FailureClass::general}, first_rank);
  if (cause) cause = fault_behind(*cause, end);
  const auto outside = earliest(end, {FailureClass::outside}, first_rank);
  if (cause && outside) {
    const bool is_later = is_before(*outside, *cause, {}) && outside->log == cause->log;
    if (is_later || was_survived(*cause, *outside)) return outside;
  }
  if (cause) return specific_cause(*cause, end);
  if (auto hang = earliest(end, {FailureClass::hang}, first_rank)) return missing_peer(*hang, end);
  return outside;
}

}  // namespace

Choice choose_root_cause(const std::vector<LogScan>& logs, std::optional<int> first_rank) {
  for (const LogScan& each : logs) {
    if (!first_rank && each.result.first_rank) first_rank = each.result.first_rank;
  }
  std::vector<Suspect> end, earlier;
  for (const LogScan& each : logs) split_final_hits(each, end, earlier);
  const std::vector<Suspect> early = extract_if(end, is_early_end);
  (void)extract_if(end, [&](const Suspect& each) { return is_passing_warning(each, end); });
  const std::vector<Suspect> harmless = extract_if(end, is_harmless);
  const std::vector<Suspect> forks =
      extract_if(end, [](const Suspect& each) { return each.hit->rule->name == kForkOfThreads; });
  const std::vector<Suspect> passed = extract_if(
      end, [&](const Suspect& each) { return script_continued_after(each, end) || was_handled(each, end); });
  // A step is killed as a whole: the rank whose connection broke first is not the one that failed first.
  if (memory_kill(end)) {
    const std::vector<Suspect> losses = extract_if(end, [&](const Suspect& each) {
      return each.log->is_record && is_among(each.hit->rule->name, kLosses);
    });
    if (!losses.empty()) first_rank.reset();
  }
  Choice choice;
  choice.cause = select_cause(end, first_rank);
  choice.is_sure = choice.cause && is_stated(*choice.cause, end);
  if (!choice.cause) choice.cause = earliest(end, {FailureClass::ending}, first_rank);
  const bool has_failed_step = std::any_of(
      passed.begin(), passed.end(), [](const Suspect& each) { return each.hit->rule->script_continues; });
  const auto own = own_error(logs, first_rank, choice.cause);
  // A step of a script that failed explains the words at its end.
  if (own && !(own->log->result.is_own_verdict && !choice.cause && has_failed_step)) {
    choice.cause = own;
    choice.is_sure = false;
  }
  refine(end, forks, choice);
  if (!choice.cause) choice.cause = earliest(end, {FailureClass::effect}, first_rank);
  if (!choice.cause && !passed.empty()) choice.cause = passed.front();
  if (!choice.cause) choice.cause = last_harmless(harmless);
  // Ranks that wait or lost a peer may print for long after the peer's failure.
  const bool is_effect = choice.cause && (choice.cause->hit->rule->failure_class == FailureClass::hang ||
                                          choice.cause->hit->rule->failure_class == FailureClass::effect);
  if (!early.empty() && lost_a_peer(choice.cause, end, first_rank)) {
    choice.cause = early.front();
    choice.is_sure = false;
    choice.same_rule.assign(early.begin() + 1, early.end());
  } else if (const auto before = is_effect ? last_cause(earlier) : std::nullopt) {
    choice.cause = before;
    choice.is_sure = false;
  }
  add_related(end, choice);
  if (choice.cause) choice.rank = rank_of_fault(*choice.cause, end);
  if (choice.cause) choice.in_handler = error_of_handler(*choice.cause, end);
  return choice;
}

}  // namespace stoker::diagnose
