#include "diagnose/finality.h"

#include <algorithm>

#include <re2/re2.h>

#include "diagnose/causal_link.h"
#include "diagnose/frames.h"
#include "diagnose/line_signs.h"
#include "diagnose/matches.h"
#include "diagnose/survived.h"

namespace stoker::diagnose {
namespace {

// A reason is at most this far above its exception.
constexpr std::uint64_t kReasonAbove = 4;
// Lines from a missing file to the end of a script that worked without it.
constexpr std::uint64_t kWorkOfScript = 4;
// A longer line is advice, or data.
constexpr std::size_t kLongestWords = 240;

// Whether the line belongs to the report of a failure, or to a program that only observes it.
bool is_of_failure(std::string_view line) {
  static const RE2 kReport(
      R"(^(?:\s|$|[│╭╰|#~^]|Traceback|During handling|The above exception|wandb: |srun: |slurmstepd: |\S+: line \d+: ))");
  return matches(line, kReport) || is_exception(line) || is_of_launcher(line) ||
         level_of(line) == LogLevel::warning;
}

// Whether a later line of the process is of one of the kinds.
bool has_sign(const ScanResult& log, const Hit& hit, std::initializer_list<AfterError> kinds) {
  return std::any_of(log.after.begin(), log.after.end(), [&](const LineAfter& each) {
    return each.line > hit.line && each.rank == hit.rank &&
           std::find(kinds.begin(), kinds.end(), each.kind) != kinds.end();
  });
}

// A success that a failed end follows is the one of a different process, or of a part of the script.
bool has_success(const ScanResult& log, const Hit& hit) {
  std::uint64_t failed = log.last_failed_end;
  for (const LineAfter& each : log.after) {
    if (each.kind == AfterError::failed_end) failed = std::max(failed, each.line);
  }
  const bool is_finished = log.end.finished && *log.end.finished > std::max(hit.line, failed);
  return is_finished || std::any_of(log.after.begin(), log.after.end(), [&](const LineAfter& each) {
           return each.kind == AfterError::success && each.rank == hit.rank &&
                  each.line > std::max(hit.line, failed);
         });
}

// Commands that only prepare or describe what the script then does.
bool is_helper(const Hit& hit) {
  static const RE2 kHelper(
      R"(^(?:module|ml|conda|mamba|micromamba|spack|source|nvidia-smi|nvcc|lscpu|free|df|hostname|numactl|lfs|git|which|clear|tput|stty|setfacl|chmod)$)");
  static const RE2 kOfFiles(R"(^(?:rm|cat|ls|mkdir|ln|cd|mv): )");
  return RE2::FullMatch(hit.groups[0], kHelper) || hit.rule->name == "module-not-loaded" ||
         hit.rule->name == "module-command-missing" || matches(hit.text, kOfFiles);
}

}  // namespace

std::optional<AfterError> after_error_of(std::string_view line) {
  static const RE2 kWork(
      R"((?i)^(?:\S+ ){0,4}?(?:wrote|saved|stored|exported|uploaded|copied|processed|converted|downloaded|restored|recovered|resumed|resuming|reloaded|reconnected|passed)\b)");
  if (reports_failed_end(line) && !reports_fallback(line)) return AfterError::failed_end;
  if (is_of_failure(line) || line.size() > kLongestWords) return std::nullopt;
  if (reports_retry(line)) return AfterError::way_around;
  if (reports_fallback(line) || reports_choice(line)) return AfterError::fallback;
  if (reports_error(line) || states_reason(line)) return std::nullopt;
  if (reports_success(line) || reports_amount(line)) return AfterError::success;
  if (reports_result(line) || matches(line, kWork) || is_good_trial(line)) return AfterError::work;
  return std::nullopt;
}

bool is_final(const Suspect& suspect) {
  if (suspect.log->is_record) return true;
  const ScanResult& log = suspect.log->result;
  const Hit& hit = *suspect.hit;
  // The last of several attempts decides.
  const auto later = std::find_if(log.hits.begin(), log.hits.end(), [&](const Hit& each) {
    return each.rule == hit.rule && each.rank == hit.rank && each.line > hit.line;
  });
  if (later != log.hits.end() &&
      (hit.is_retried || has_sign(log, hit, {AfterError::way_around, AfterError::fallback})))
    return is_final({suspect.log, &*later});
  // Words above a traceback may announce it, and not its end: "resuming from a.ckpt".
  const bool is_last_traceback = hit.begin != hit.line && &hit == &log.hits.back();
  if ((hit.is_retried || hit.is_fallback) && !is_last_traceback) return false;
  // Lines of unknown processes show nothing about one of them.
  if (hit.rank < 0 && !is_of_one_process(*suspect.log)) return true;
  if (continued_after(*suspect.log, hit)) return false;
  return !has_sign(log, hit, {AfterError::way_around, AfterError::fallback, AfterError::work}) &&
         !has_success(log, hit);
}

bool is_disputed(const Suspect& suspect, const std::vector<Suspect>& hits) {
  // Whether a later failure follows from a line of the shell is known before.
  if (suspect.log->is_record || suspect.hit->rule->script_continues) return false;
  return std::any_of(hits.begin(), hits.end(), [&](const Suspect& each) {
    const Hit& hit = *each.hit;
    const bool is_later = each.log == suspect.log && each.rank() == suspect.rank() &&
                          hit.begin > suspect.hit->line && hit.rule != suspect.hit->rule &&
                          !hit.rule->fits_several;
    const bool is_exception_of_program =
        hit.begin != hit.line && !hit.is_chained && !hit.is_logged && !hit.frame.empty() &&
        (hit.rule->failure_class == FailureClass::root || hit.rule->failure_class == FailureClass::general);
    // The line just above an exception often reports its reason.
    const bool is_reason =
        hit.begin - suspect.hit->line <= kReasonAbove && hit.rule->failure_class == FailureClass::general;
    return is_later && is_exception_of_program && !is_reason && !share_a_subject(suspect.hit->text, hit.text);
  });
}

bool script_worked_after(const LogScan& log, const Hit& hit) {
  if (!hit.rule->script_continues) return false;
  const LogEnd& end = log.result.end;
  if (!end.finished || *end.finished <= hit.line) return false;
  if (end.has_measure) return true;
  const bool has_progress = std::any_of(log.result.progress.begin(), log.result.progress.end(),
                                        [&](const ProgressLine& each) { return each.line > hit.line; });
  // A script that stresses its success after further work has reported, or avoided, what it lacked.
  const bool is_of_files = hit.rule->name == "tool-file-missing" || is_helper(hit);
  if (is_of_files && end.is_emphatic && *end.finished - hit.line >= kWorkOfScript &&
      log.result.last_failed_end == 0)
    return true;
  return has_progress ||
         (is_helper(hit) &&
          (end.is_explicit ||
           has_sign(log.result, hit, {AfterError::work, AfterError::way_around, AfterError::fallback})));
}

}  // namespace stoker::diagnose
