#include "diagnose/specific_cause.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/causal_link.h"
#include "diagnose/exception_chain.h"
#include "diagnose/frames.h"
#include "diagnose/script_sequence.h"
#include "diagnose/survived.h"

namespace stoker::diagnose {
namespace {

// Chained exceptions are within this distance.
constexpr std::uint64_t kChained = 80;
// Results of a program that survived its errors: they are the cause, and not the first of the errors.
constexpr std::array<std::string_view, 1> kResults = {"optuna-no-trial"};
// Crashes that a dump of Python's stack explains better, if one follows.
constexpr std::array<std::string_view, 5> kCrashes = {"crashed", "ray-worker-died", kRayActorDied,
                                                      "python-crashed", "heap-damaged"};
constexpr std::string_view kPythonException = "python-exception";

// Replaces a general exception by a more specific hit of the same rank, a few lines later.
Suspect more_specific(const Suspect& cause, const std::vector<Suspect>& suspects) {
  if (cause.hit->rule->failure_class != FailureClass::general) return cause;
  for (const Suspect& each : suspects) {
    const bool is_near = each.log == cause.log && each.rank() == cause.rank() &&
                         each.hit->line > cause.hit->line && each.hit->begin <= cause.hit->line + kChained;
    if (is_near && each.hit->rule->failure_class == FailureClass::root) return each;
  }
  return cause;
}

// Whether hardly a line follows the hit: nothing shows that its process continued.
bool is_at_the_end(const Suspect& suspect) {
  const ScanResult& log = suspect.log->result;
  return suspect.hit == &log.hits.back() &&
         log.lines - std::min(log.lines, suspect.hit->line) <= kFinalLines && !log.end.finished;
}

// Whether the traceback ends in the program, outside of libraries, and no logging call printed it. A warning
// above the last one need not belong to it.
bool is_uncaught(const Suspect& suspect) {
  const Hit& hit = *suspect.hit;
  return is_cause(suspect) && !hit.frame.empty() && !hit.is_chained &&
         (!is_reported(hit) || is_at_the_end(suspect));
}

// Whether the line is one of an exception without its traceback, which Python prints for each that ends a
// program.
bool is_printed_exception(const Hit& hit) {
  return hit.begin == hit.line && is_exception(hit.text) && !hit.rule->script_continues;
}

// Whether the exception that ended the process did not follow from what the program had printed before.
bool is_independent(const Hit& before, const Hit& last) {
  const bool is_last_root = last.rule->failure_class == FailureClass::root;
  if (before.rule == last.rule) return true;
  const bool is_root = before.rule->failure_class == FailureClass::root;
  if (is_root && share_a_subject(before.text, last.text)) return false;
  if (is_last_root || !is_root || is_lone_warning(before)) return true;
  // A general exception often follows from the specific error that the program reported.
  return before.is_retried && is_program_error(last.text);
}

// The exception that ended the process, in place of an earlier one: of a callback of a library, which has no
// frame of the program, or of an error that the program reported.
Suspect last_uncaught(const Suspect& cause, const std::vector<Suspect>& end) {
  const Hit& hit = *cause.hit;
  const bool is_of_library = hit.rule->name == kPythonException && hit.frame.empty() && hit.begin != hit.line;
  const bool may_be_caught =
      is_of_library || is_reported(hit) || is_lone_warning(hit) || is_printed_exception(hit);
  if (cause.log->is_record || !may_be_caught) return cause;
  for (auto each = end.rbegin(); each != end.rend(); ++each) {
    const bool is_later =
        each->log == cause.log && each->rank() == cause.rank() && each->hit->begin > cause.hit->line;
    if (is_later && is_uncaught(*each) && (is_of_library || is_independent(hit, *each->hit))) return *each;
  }
  return cause;
}

// The later result of a program that reported its errors itself.
Suspect result_of(const Suspect& cause, const std::vector<Suspect>& end) {
  for (const Suspect& each : end) {
    const bool is_later = each.log == cause.log && each.hit->line > cause.hit->line;
    if (is_later && is_reported(*cause.hit) && is_among(each.hit->rule->name, kResults)) return each;
  }
  return cause;
}

// The proxy that refused, in place of the connection to it.
Suspect proxy_of(const Suspect& cause, const std::vector<Suspect>& end) {
  for (const Suspect& each : end) {
    const bool is_near = each.log == cause.log && each.hit->line > cause.hit->line &&
                         each.hit->begin <= cause.hit->line + kChained;
    if (is_near && each.hit->rule->name == "proxy-failed") return each;
  }
  return cause;
}

// The timeout that ended the peer before its connections were refused, in place of the refusal.
Suspect left_by_peer(const Suspect& cause, const std::vector<Suspect>& end) {
  static constexpr std::array<std::string_view, 3> kRefused = {"gloo-full-mesh", "gloo-connect-failed",
                                                               "master-not-reached"};
  static constexpr std::array<std::string_view, 2> kTimeouts = {"store-key-missing", "clients-missing"};
  if (!is_among(cause.hit->rule->name, kRefused) || cause.hit->text.find("efused") == std::string::npos)
    return cause;
  for (const Suspect& each : end) {
    const bool is_timeout = is_among(each.hit->rule->name, kTimeouts);
    if (is_timeout && each.log == cause.log && each.hit->line < cause.hit->begin) return each;
    if (is_timeout && each.log != cause.log && each.hit->time && cause.hit->time &&
        *each.hit->time < *cause.hit->time)
      return each;
  }
  return cause;
}

// The dump of the stack that follows a crash.
Suspect with_dump(const Suspect& crash, const std::vector<Suspect>& end) {
  if (!is_among(crash.hit->rule->name, kCrashes)) return crash;
  for (const Suspect& each : end) {
    const bool is_near = each.log == crash.log && each.hit->line >= crash.hit->line &&
                         each.hit->line - crash.hit->line <= kChained;
    if (is_near && each.hit->rule->name == kDumpOfCrash && !each.hit->frame.empty()) return each;
  }
  return crash;
}

// The actor of Ray whose process the daemon reported as ended.
Suspect actor_of(const Suspect& cause, const std::vector<Suspect>& end) {
  if (cause.hit->rule->name != "ray-worker-died") return cause;
  for (const Suspect& each : end) {
    const bool is_near = each.log == cause.log && each.hit->line > cause.hit->line &&
                         each.hit->begin - cause.hit->line <= kChained;
    if (is_near && each.hit->rule->name == kRayActorDied && !each.hit->groups[1].empty()) return each;
  }
  return cause;
}

}  // namespace

Suspect specific_cause(const Suspect& cause, const std::vector<Suspect>& end) {
  const Suspect last = stated_in_chain(last_uncaught(cause, end), end);
  return left_by_peer(proxy_of(result_of(more_specific(last, end), end), end), end);
}

Suspect detail_of_crash(const Suspect& cause, const std::vector<Suspect>& end) {
  return actor_of(with_dump(cause, end), end);
}

Suspect missing_peer(const Suspect& hang, const std::vector<Suspect>& end) {
  if (hang.hit->rule->name != kWatchdogTimeout) return hang;
  for (const Suspect& each : end) {
    if (each.log->is_record && each.hit->rule->name == kUnknownPosition) return each;
  }
  return hang;
}

}  // namespace stoker::diagnose
