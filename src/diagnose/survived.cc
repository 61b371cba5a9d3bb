#include "diagnose/survived.h"

#include <algorithm>

#include <re2/re2.h>

#include "diagnose/finality.h"
#include "diagnose/frames.h"
#include "diagnose/matches.h"

namespace stoker::diagnose {
namespace {

// One line may be the last one of a peer that prints later. After a traceback that no logging call printed,
// the lines may come from peers whose end follows.
constexpr std::size_t kSeveral = 2;
constexpr std::size_t kMany = 10;
// A program reports its way around an error within this number of lines.
constexpr std::uint64_t kWayAround = 12;

std::size_t count_progress(const ScanResult& log, std::uint64_t after, std::uint64_t until) {
  return static_cast<std::size_t>(
      std::count_if(log.progress.begin(), log.progress.end(),
                    [&](const ProgressLine& each) { return each.line > after && each.line < until; }));
}

bool is_failure(const Hit& hit) {
  const FailureClass failure_class = hit.rule->failure_class;
  return failure_class != FailureClass::slow && failure_class != FailureClass::noise;
}

// Whether the process survived such an error: this one, or an earlier one of the same rule.
bool continued_after_such(const LogScan& log, const Hit& hit) {
  if (hit.rank < 0 && !is_of_one_process(log)) return false;
  return std::any_of(log.result.hits.begin(), log.result.hits.end(), [&](const Hit& each) {
    return each.rule == hit.rule && each.rank == hit.rank && each.line <= hit.line &&
           continued_after(log, each);
  });
}

// Whether the hit is the end of a program beside the training, which reported its result later.
bool is_of_other_program(const LogEnd& end, const Hit& hit) {
  return hit.rule->name == "batch-killed" && is_other_command(hit.groups[0]) &&
         (end.is_logged || end.has_measure);
}

// Whether the program itself printed the exception, behind its own words, and so has caught it.
bool is_printed_in_words(const Hit& hit) {
  static const RE2 kPrinted(R"(^\S.*?[:(=] ?(?:\w+\.)*\w+(?:Error|Exception)\b)");
  return hit.begin == hit.line && !is_exception(hit.text) && matches(hit.text, kPrinted);
}

// Whether the program continued after the error, as its lines soon after it show.
bool went_around(const LogScan& log, const Hit& hit, std::uint64_t until) {
  const bool is_traceback = hit.begin != hit.line;
  return std::any_of(log.result.after.begin(), log.result.after.end(),
                     [&](const LineAfter& each) {
                       const bool is_way = each.kind == AfterError::fallback ||
                                           (each.kind == AfterError::way_around && !is_traceback);
                       return is_way && each.rank == hit.rank && each.line > hit.line &&
                              each.line - hit.line <= kWayAround && each.line < until;
                     }) ||
         (is_printed_in_words(hit) && count_progress(log.result, hit.line, until) >= kSeveral) ||
         (hit.begin == hit.line && is_of_trial(hit.text) && until > hit.line + 1);
}

// Whether the program survived the hit of a log that ends with its success.
bool survived(const LogScan& log, const Hit& hit) {
  if (is_end_of_helper(hit.text) || hit.rule->name == kDumpOnSignal || is_lone_warning(hit)) return true;
  if (hit.line > *log.result.end.finished && !hit.is_logged) return false;
  if (hit.line < start_of_last_attempt(log.result)) return true;
  if (went_around(log, hit, *log.result.end.finished)) return true;
  if (is_harmless({&log, &hit}) || hit.is_retried || script_worked_after(log, hit)) return true;
  // A script may print "Job finished" although its program has just logged its failure.
  const bool is_of_daemon = hit.text.starts_with("(raylet) ") || hit.text.starts_with("(autoscaler") ||
                            hit.text.find(" - distributed.") != std::string::npos;
  const LogEnd& end = log.result.end;
  // A sanitizer of undefined behaviour reports it and continues; so does a program without one of its
  // threads.
  if (hit.is_of_thread || hit.rule->name == "undefined-behaviour") return true;
  // The success of one rank shows nothing about its peers.
  const bool is_of_other_rank = hit.rank >= 0 && end.rank >= 0 && hit.rank != end.rank;
  const bool is_of_program = end.is_logged || end.has_measure;
  if (!is_of_other_rank && is_reported(hit) && (is_of_program || is_of_daemon)) return true;
  if (!is_of_other_rank && is_reported(hit) && end.is_emphatic && *end.finished - hit.line > kSeveral)
    return true;
  if (is_of_other_program(end, hit) || continued_after_such(log, hit)) return true;
  // A program that prints a traceback and continues has caught the exception.
  return is_cause(hit) && resumed({&log, &hit}, *end.finished);
}

bool log_ended_well(const LogScan& log) {
  const ScanResult& result = log.result;
  // A result is a weaker sign than a reported end: it counts for a log without any failure.
  if (!result.end.finished && result.end.last_result && result.last_failed_end == 0)
    return std::all_of(result.hits.begin(), result.hits.end(), [&](const Hit& hit) {
      return !is_failure(hit) || hit.is_retried || is_lone_warning(hit) || is_harmless({&log, &hit}) ||
             went_around(log, hit, *result.end.last_result);
    });
  if (!result.end.finished || result.end.is_doubtful ||
      result.last_failed_end > start_of_last_attempt(result))
    return false;
  return std::all_of(result.hits.begin(), result.hits.end(),
                     [&](const Hit& hit) { return !is_failure(hit) || survived(log, hit); });
}

}  // namespace

bool is_of_one_process(const LogScan& log) {
  return log.rank >= 0 || std::all_of(log.result.hits.begin(), log.result.hits.end(), [](const Hit& hit) {
           if (is_lone_warning(hit) || hit.level == LogLevel::info) return true;
           return hit.rank < 0 && hit.rule->failure_class != FailureClass::effect &&
                  hit.rule->failure_class != FailureClass::hang;
         });
}

std::uint64_t start_of_last_attempt(const ScanResult& log) {
  const std::vector<std::uint64_t>& ends = log.attempt_ends;
  for (std::size_t i = ends.size(); i-- > 0;) {
    const std::uint64_t next = i + 1 < ends.size() ? ends[i + 1] : log.lines + 2;
    // With this table torchrun gives up, also if ranks of other nodes still print.
    const bool gave_up = log.last_giving_up > ends[i] && log.last_giving_up < next;
    const bool is_finished = log.end.finished && *log.end.finished > ends[i] && *log.end.finished < next;
    if (!gave_up && (is_finished || count_progress(log, ends[i], next) >= kSeveral)) return ends[i];
  }
  return 0;
}

bool is_harmless(const Suspect& suspect) {
  if (suspect.log->is_record) return false;
  // Processes that work do not wait for ever.
  const ScanResult& log = suspect.log->result;
  const std::string_view rule = suspect.hit->rule->name;
  if (rule == kForkOfThreads || rule == kTasksMissing || rule == kWaitsForLock)
    return log.end.finished || count_progress(log, suspect.hit->line, log.lines + 2) > 0;
  if (!is_cause(*suspect.hit)) return false;
  return suspect.hit->level == LogLevel::info || suspect.hit->is_fallback;
}

bool resumed(const Suspect& suspect, std::uint64_t until) {
  if (suspect.log->is_record) return false;
  const std::vector<ProgressLine>& lines = suspect.log->result.progress;
  const auto count = std::count_if(lines.begin(), lines.end(), [&](const ProgressLine& each) {
    return each.line > suspect.hit->line && each.line < until && each.rank == suspect.hit->rank;
  });
  return static_cast<std::size_t>(count) >= (is_reported(*suspect.hit) ? kSeveral : kMany);
}

bool continued_after(const LogScan& log, const Hit& hit) {
  const ProgressLine* before = nullptr;
  for (const ProgressLine& each : log.result.progress) {
    if (each.rank != hit.rank || !each.count) continue;
    if (each.line < hit.begin) before = &each;
    if (each.line <= hit.line) continue;
    return before != nullptr && before->count->unit == each.count->unit &&
           each.count->number > before->count->number;
  }
  return false;
}

// The exception that followed an unread file is not one of its warning.
bool is_lone_warning(const Hit& hit) {
  return hit.begin == hit.line && hit.frame.empty() && is_warning(hit.text);
}

bool is_reported(const Hit& hit) { return hit.is_logged || hit.is_retried || hit.level == LogLevel::warning; }

bool ended_well(const std::vector<LogScan>& logs) {
  const auto has_failure = [](const LogScan& log) {
    return std::any_of(log.result.hits.begin(), log.result.hits.end(), is_failure) ||
           log.result.last_failed_end > 0;
  };
  bool is_finished = false;
  for (const LogScan& each : logs) {
    if (log_ended_well(each)) {
      is_finished = true;
    } else if (each.is_record || has_failure(each) || each.result.end.finished) {
      return false;
    }
  }
  return is_finished;
}

std::vector<Suspect> survived_errors(const std::vector<LogScan>& logs) {
  std::vector<Suspect> errors;
  for (const LogScan& log : logs) {
    for (const Hit& hit : log.result.hits) {
      const bool is_error = is_cause(hit) || hit.rule->failure_class == FailureClass::ending;
      if (is_error && !is_harmless({&log, &hit})) errors.push_back({&log, &hit});
    }
  }
  return errors;
}

}  // namespace stoker::diagnose
