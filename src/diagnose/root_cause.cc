#include "diagnose/root_cause.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include <re2/re2.h>

#include "diagnose/causal_link.h"
#include "diagnose/exception_chain.h"
#include "diagnose/finality.h"
#include "diagnose/frames.h"
#include "diagnose/log_line.h"
#include "diagnose/matches.h"
#include "diagnose/script_sequence.h"
#include "diagnose/survived.h"

namespace stoker::diagnose {
namespace {

// After a survived error, a log continues for more lines than this before the fatal one.
constexpr std::uint64_t kLongPause = 1000;
// Chained exceptions are within this distance.
constexpr std::uint64_t kChained = 80;
// A warning is a cause as a last resort if at most this number of lines follow it.
constexpr std::uint64_t kAfterWarning = 1;

// Rules for processes that the kernel or Slurm killed for their memory, most specific first: srun names the
// node and the task, slurmstepd only the step.
constexpr std::array<std::string_view, 5> kMemoryKills = {
    "srun-out-of-memory", "rank-out-of-memory", "kernel-oom", "cgroup-oom-kill", "memory-limit-exceeded"};
// Records of a rank that was lost together with its step: they do not show which rank failed first.
constexpr std::array<std::string_view, 2> kLosses = {"rank-connection-broke", "rank-step-ended"};

// Recorded faults of a GPU, and the errors that CUDA and its libraries then report to the program.
constexpr std::array<std::string_view, 4> kDeviceFaults = {"xid-fell-off-bus", "xid-memory", "xid-nvlink",
                                                           "xid-firmware"};
constexpr std::string_view kXidInLog = "gpu-xid";
constexpr std::array<std::string_view, 7> kDeviceErrors = {
    "launch-failure", "illegal-memory-access", "ecc-error", "gpu-fell-off",
    "cublas-failed",  "cudnn-failed",          "no-gpu"};

// Failures of a connection, and what a package manager then does not find.
constexpr std::array<std::string_view, 7> kNoConnection = {
    "proxy-failed",        "proxy-not-reached", "server-refused",   "server-refused-url",
    "certificate-refused", "name-of-server",    "name-not-resolved"};
constexpr std::array<std::string_view, 2> kLacksOfIndex = {"pip-no-version", "conda-no-package"};

constexpr std::string_view kDriverTooOld = "driver-too-old";

// Results of a program that survived its errors: they are the cause, and not the first of the errors.
constexpr std::array<std::string_view, 1> kResults = {"optuna-no-trial"};
// Crashes that a dump of Python's stack explains better, if one follows.
constexpr std::array<std::string_view, 5> kCrashes = {"crashed", "ray-worker-died", kRayActorDied,
                                                      "python-crashed", "heap-damaged"};
// Ends without a reason, which may have come from processes that waited for ever.
constexpr std::array<std::string_view, 6> kEndsOfHang = {
    "timeout-command", "timeout-exit", "time-limit", "dump-of-hang", "interrupted", "aborted-while-waiting"};
// Failures of JAX's coordination, after which it reports that another task failed although none did.
constexpr std::array<std::string_view, 2> kNoCoordination = {"jax-not-registered", "jax-no-coordinator"};
constexpr std::string_view kPeerOfJax = "jax-peer-failed";
constexpr std::string_view kPythonException = "python-exception";

bool is_cause(const Suspect& suspect) {
  return suspect.hit->rule->failure_class == FailureClass::root ||
         suspect.hit->rule->failure_class == FailureClass::general;
}

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
bool was_survived(const Suspect& first, const Suspect& outside) {
  if (first.log->is_record) return false;
  const Suspect cause = last_repetition(first);
  const bool is_same_log = cause.log == outside.log;
  return quiet_lines(cause, is_same_log ? position_of(*outside.hit) : end_of(*cause.log)) > kShortPause;
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
  const bool is_of_device = is_among(later.rule->name, kDeviceErrors);
  if (later.rule == warning.rule || is_program_error(later.text)) return false;
  if (is_of_device) return is_among(warning.rule->name, kDeviceErrors) || warning.rule->name == kDriverTooOld;
  if (is_among(warning.rule->name, kNoConnection)) return share_a_subject(warning.text, later.text);
  const bool is_general = later.rule->failure_class == FailureClass::general;
  if (warning.rule->name == kDriverTooOld) return is_general && share_a_subject(warning.text, later.text);
  std::string subjects = warning.text;
  RE2::GlobalReplace(&subjects, kOfGpu, "");
  return is_general && share_a_subject(subjects, later.text);
}

// Whether the hit is a warning that does not explain the later end of its process, or its log does not end
// near it.
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

// Whether the process continued after the error for a while and failed of a later one.
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

// Whether the job may have survived an error this far from the end of its log.
bool may_be_survived(const Suspect& first) {
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

// The most specific evidence of a process that was killed for its memory.
std::optional<Suspect> memory_kill(const std::vector<Suspect>& end) {
  std::optional<Suspect> best;
  std::size_t best_order = kMemoryKills.size();
  for (const Suspect& each : end) {
    const auto order = static_cast<std::size_t>(
        std::find(kMemoryKills.begin(), kMemoryKills.end(), each.hit->rule->name) - kMemoryKills.begin());
    const bool names_node = !node_named_in(each.hit->text).node.empty();
    const bool is_better = order < best_order || (best && order == best_order && names_node &&
                                                  node_named_in(best->hit->text).node.empty());
    if (order == kMemoryKills.size() || !is_better) continue;
    best = each;
    best_order = order;
  }
  return best;
}

// Whether the kernel's line about a fault of a GPU is close to the error that the program reports.
bool is_fault_in_log(const Suspect& fault, const Suspect& cause) {
  constexpr std::uint64_t kNear = 200;
  if (fault.hit->rule->name != kXidInLog || fault.log->is_record || cause.log->is_record) return false;
  const std::uint64_t a = fault.hit->line, b = cause.hit->line;
  return fault.log != cause.log || std::max(a, b) - std::min(a, b) <= kNear;
}

// The GPU's fault behind an error that the program reports.
std::optional<Suspect> device_fault(const Suspect& cause, const std::vector<Suspect>& end) {
  const FailureRule& rule = *cause.hit->rule;
  const bool is_of_device = is_among(rule.name, kDeviceErrors);
  if (rule.failure_class != FailureClass::general && !is_of_device) return std::nullopt;
  const bool names_cuda = is_of_device || cause.hit->text.find("CUDA") != std::string::npos;
  for (const Suspect& each : end) {
    if (each.log->is_record && is_among(each.hit->rule->name, kDeviceFaults)) return each;
    if (names_cuda && is_fault_in_log(each, cause)) return each;
  }
  return std::nullopt;
}

// The rank whose program reported the fault of a GPU, which the line about it does not name.
std::optional<int> rank_of_fault(const Suspect& cause, const std::vector<Suspect>& end) {
  if (cause.hit->rule->name != kXidInLog || cause.rank() >= 0) return std::nullopt;
  for (const Suspect& each : end) {
    if (each.rank() >= 0 && is_among(each.hit->rule->name, kDeviceErrors)) return each.rank();
  }
  return std::nullopt;
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

// The loss that was not a number long before an assertion about its result failed.
std::optional<Suspect> nan_before(const Suspect& cause) {
  if (!cause.hit->rule->name.starts_with("assertion")) return std::nullopt;
  for (const Hit& hit : cause.log->result.hits) {
    if (hit.rule->name == kLossIsNan && hit.line < cause.hit->line) return Suspect{cause.log, &hit};
  }
  return std::nullopt;
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

// The later result of a program that reported its errors itself.
Suspect result_of(const Suspect& cause, const std::vector<Suspect>& end) {
  for (const Suspect& each : end) {
    const bool is_later = each.log == cause.log && each.hit->line > cause.hit->line;
    if (is_later && is_reported(*cause.hit) && is_among(each.hit->rule->name, kResults)) return each;
  }
  return cause;
}

// Whether a line states the cause, and the log shows that it ended the program.
bool is_stated(const Suspect& cause, const std::vector<Suspect>& end) {
  return states_cause(*cause.hit) && !may_be_survived(cause) && !may_have_finished(cause) &&
         is_final(cause) && !is_disputed(cause, end);
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

// Replaces a cause that other lines explain.
void refine(const std::vector<Suspect>& end, const std::vector<Suspect>& forks, Choice& choice) {
  if (choice.cause) choice.cause = actor_of(with_dump(*choice.cause, end), end);
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

// The record of the peer that a rank waited for, in place of its timeout.
Suspect missing_peer(const Suspect& hang, const std::vector<Suspect>& end) {
  if (hang.hit->rule->name != kWatchdogTimeout) return hang;
  for (const Suspect& each : end) {
    if (each.log->is_record && each.hit->rule->name == kUnknownPosition) return each;
  }
  return hang;
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

std::optional<Suspect> select_cause(const std::vector<Suspect>& end, std::optional<int> first_rank) {
  auto cause = earliest(end, {FailureClass::root, FailureClass::general}, first_rank);
  // An unknown exception of a peer may be an effect of the kill.
  if (cause && (cause->hit->rule->failure_class == FailureClass::general ||
                is_among(cause->hit->rule->name, kMemoryKills))) {
    if (const auto kill = memory_kill(end)) cause = kill;
  }
  if (cause) {
    if (const auto fault = device_fault(*cause, end)) cause = fault;
  }
  const auto outside = earliest(end, {FailureClass::outside}, first_rank);
  if (cause && outside) {
    const bool is_later = is_before(*outside, *cause, {}) && outside->log == cause->log;
    if (is_later || was_survived(*cause, *outside) || was_restarted(*cause, *outside)) return outside;
  }
  if (cause) {
    const Suspect last = stated_in_chain(last_uncaught(*cause, end), end);
    return left_by_peer(proxy_of(result_of(more_specific(last, end), end), end), end);
  }
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
