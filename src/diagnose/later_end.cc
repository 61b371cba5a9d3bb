#include "diagnose/later_end.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <re2/re2.h>

#include "diagnose/causal_link.h"
#include "diagnose/machine_fault.h"
#include "diagnose/script_sequence.h"
#include "diagnose/survived.h"

namespace stoker::diagnose {
namespace {

// Failures of a connection, and what a package manager then does not find.
constexpr std::array<std::string_view, 7> kNoConnection = {
    "proxy-failed",        "proxy-not-reached", "server-refused",   "server-refused-url",
    "certificate-refused", "name-of-server",    "name-not-resolved"};
constexpr std::array<std::string_view, 2> kLacksOfIndex = {"pip-no-version", "conda-no-package"};
constexpr std::string_view kDriverTooOld = "driver-too-old";

// The last hit of the same kind in that log. An error that repeats without progress in between is one
// failure.
Suspect last_repetition(const Suspect& cause) {
  const auto is_same = [&](const Hit& hit) {
    return hit.rule == cause.hit->rule && hit.rank == cause.hit->rank && hit.line >= cause.hit->line;
  };
  const std::vector<Hit>& hits = cause.log->result.hits;
  const auto last = std::find_if(hits.rbegin(), hits.rend(), is_same);
  if (cause.log->is_record || last == hits.rend() || is_reported(*last) || resumed(cause, last->begin))
    return cause;
  return {cause.log, &*last};
}

// Whether the job continued for a while after the failure, until an external end.
bool continued_until(const Suspect& first, const Suspect& outside) {
  if (first.log->is_record) return false;
  const Suspect cause = last_repetition(first);
  const bool is_same_log = cause.log == outside.log;
  return quiet_lines(cause, is_same_log ? position_of(*outside.hit) : end_of(*cause.log)) > kShortPause;
}

// Whether torchrun or Slurm started the program again after the failure, and an external end came later.
bool was_restarted(const Suspect& cause, const Suspect& outside) {
  if (cause.log != outside.log || cause.log->is_record) return false;
  const ScanResult& log = cause.log->result;
  const auto is_between = [&](std::uint64_t line) {
    return line > cause.hit->line && line < outside.hit->line;
  };
  return outside.hit->rule->name == "torchrun-terminated" && !is_between(log.last_giving_up) &&
         std::any_of(log.attempt_ends.begin(), log.attempt_ends.end(), is_between);
}

// Lines that a process prints at most after an error that ends it.
std::uint64_t longest_farewell(const Hit& hit) { return hit.is_logged ? kFinalLines : kShortPause; }

// Whether a later hit ends a process that had survived an error.
bool is_later_end(const Suspect& suspect, const Suspect& later) {
  const FailureClass failure_class = later.hit->rule->failure_class;
  const bool is_end = is_cause(later) || failure_class == FailureClass::outside ||
                      failure_class == FailureClass::ending || failure_class == FailureClass::hang;
  if (is_end && is_cause(later) && continued_after(*suspect.log, *suspect.hit)) return true;
  return is_end && is_reported(*suspect.hit) && resumed(suspect, later.hit->begin);
}

// Whether a later failure follows from what the warning reports, and does not state it better.
bool is_explained_by(const Hit& warning, const Hit& later) {
  static const RE2 kOfGpu(R"((?i)\b(?:cuda|gpus?|nvidia|cudnn)\b)");
  // Lines of pip and conda about their connection.
  if (is_among(later.rule->name, kLacksOfIndex)) return is_among(warning.rule->name, kNoConnection);
  const bool is_of_device = is_device_error(*later.rule);
  if (later.rule == warning.rule || is_program_error(later.text)) return false;
  if (is_of_device) return is_device_error(*warning.rule) || warning.rule->name == kDriverTooOld;
  if (is_among(warning.rule->name, kNoConnection)) return share_a_subject(warning.text, later.text);
  const bool is_general = later.rule->failure_class == FailureClass::general;
  if (warning.rule->name == kDriverTooOld) return is_general && share_a_subject(warning.text, later.text);
  std::string subjects = warning.text;
  RE2::GlobalReplace(&subjects, kOfGpu, "");
  return is_general && share_a_subject(subjects, later.text);
}

// Whether the job may have survived an error this far from the end of its log.
bool may_have_continued(const Suspect& first) {
  if (first.log->is_record) return false;
  const Suspect cause = last_repetition(first);
  const ScanResult& log = cause.log->result;
  const bool has_failed_end = log.last_failed_end > cause.hit->line && !is_reported(*cause.hit);
  if (is_cause(cause) && !has_failed_end && resumed(cause, log.lines + 2)) return true;
  const std::uint64_t most = is_of_one_process(*cause.log) ? longest_farewell(*cause.hit) : kLongPause / 2;
  return quiet_lines(cause, end_of(*cause.log)) > most;
}

// Whether the log ends with a success, perhaps only that of a script around the program that reported an
// error.
bool may_have_finished(const Suspect& cause) {
  const ScanResult& log = cause.log->result;
  return !cause.log->is_record && log.end.finished && *log.end.finished > cause.hit->line &&
         is_reported(*cause.hit) && log.last_failed_end == 0;
}

}  // namespace

bool is_passing_warning(const Suspect& suspect, const std::vector<Suspect>& end) {
  const FailureClass own_class = suspect.hit->rule->failure_class;
  const bool is_error =
      is_cause(suspect) || own_class == FailureClass::ending || own_class == FailureClass::effect;
  if (suspect.log->is_record || !is_error || !is_lone_warning(*suspect.hit)) return false;
  bool is_followed = suspect.log->result.own_error.has_value();
  bool is_reason = false;
  for (const Suspect& each : end) {
    const FailureClass failure_class = each.hit->rule->failure_class;
    const bool is_end = is_cause(each) || failure_class == FailureClass::outside ||
                        failure_class == FailureClass::ending || failure_class == FailureClass::effect;
    const bool is_of_process = each.rank() == suspect.rank() || each.rank() < 0 || suspect.rank() < 0;
    const bool is_later = each.log == suspect.log && each.hit->line > suspect.hit->line;
    if (!is_end || !is_of_process || !is_later || each.hit->level == LogLevel::info ||
        is_lone_warning(*each.hit))
      continue;
    is_followed = true;
    const bool is_explained = is_cause(each) && is_explained_by(*suspect.hit, *each.hit);
    if (each.hit->rule->failure_class == FailureClass::root && !is_explained) return true;
    is_reason = is_reason || is_explained;
  }
  if (is_reason) return false;
  return is_followed || quiet_lines(suspect, end_of(*suspect.log)) > kAfterWarning;
}

bool was_handled(const Suspect& suspect, const std::vector<Suspect>& end) {
  if (!is_cause(suspect) || suspect.log->is_record) return false;
  if (suspect.rank() < 0 && !is_of_one_process(*suspect.log)) return false;
  return std::any_of(end.begin(), end.end(), [&](const Suspect& each) {
    if (each.log != suspect.log || each.hit->begin <= suspect.hit->line) return false;
    if (is_later_end(suspect, each) && (each.rank() == suspect.rank() || each.rank() < 0)) return true;
    return is_cause(each) && each.rank() == suspect.rank() &&
           quiet_lines(suspect, each.hit->begin + each.hit->overwrites) > longest_farewell(*suspect.hit);
  });
}

bool was_survived(const Suspect& cause, const Suspect& outside) {
  return continued_until(cause, outside) || was_restarted(cause, outside);
}

bool may_be_survived(const Suspect& cause) { return may_have_continued(cause) || may_have_finished(cause); }

}  // namespace stoker::diagnose
