// Rules for logs. Each file in rules/ has a table for one topic; the examples of a rule are its test.
// Internal to this folder.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

namespace stoker::diagnose {

/// The role of a matching line in a failure, from cause to consequence.
enum class FailureClass {
  root,     ///< the cause itself
  general,  ///< a generic error message, such as an unknown exception
  hang,     ///< ranks wait for each other: the cause unless a rank has an error
  outside,  ///< an external end: time limit, scancel, preemption, lost node
  ending,   ///< an exit code or signal, without a reason
  effect,   ///< a different rank failed first
  slow,     ///< no failure, but it costs time
  noise,    ///< looks like an error and is harmless
};

/// One rule. Texts may contain {1} to {4}: the groups of its pattern. A part in [[...]] is left out if one of
/// its groups is empty. Code to paste is in backticks; groups in it are quoted for the shell.
struct FailureRule {
  std::string_view name;  ///< "dev-shm-full"
  FailureClass failure_class;
  /// Keywords separated by '\n': the pattern is tried only on lines with one of them.
  std::string_view words;
  /// RE2, searched in the line without its rank prefix; empty: a keyword is sufficient.
  std::string_view pattern;
  std::string_view cause;    ///< one line, lower case, no full stop
  std::string_view cure;     ///< how to fix it; may be empty
  std::string_view confirm;  ///< a command that confirms the cause; may be empty
  std::string_view example;  ///< matching lines, separated by '\n'
  std::string_view origin;   ///< public source of such lines, or "source of" the program that prints them
  bool script_continues = false;  ///< a script without set -e continues after it, and may succeed
  bool fits_several = false;      ///< the line fits several causes, and `cause` is the usual one or a list
};

/// Values of the last fields.
inline constexpr bool kScriptContinues = true;
inline constexpr bool kScriptEnds = false;
inline constexpr bool kFitsSeveral = true;

/// A rank that exited early with code 0: the cause if the first failed rank lost a peer.
inline constexpr std::string_view kEndedEarly = "rank-ended-early";

/// A signal that ended a rank of MPI. Lines above it may name the rank.
inline constexpr std::string_view kMpiCrashed = "mpi-crashed";
inline constexpr std::string_view kMpichCrashed = "mpich-crashed";

/// A task that a launcher reports as ended by a signal.
inline constexpr std::string_view kTaskSignal = "task-signal";

/// An actor of Ray whose process ended. The lines below it name the actor.
inline constexpr std::string_view kRayActorDied = "ray-actor-died";

/// Lines of NCCL's watchdog: a collective that timed out, and the position of a rank.
inline constexpr std::string_view kWatchdogTimeout = "watchdog-timeout";
inline constexpr std::string_view kWatchdogPosition = "work-positions";
/// A rank that is not known to have joined the collective that its peers wait in.
inline constexpr std::string_view kUnknownPosition = "rank-position-unknown";

/// Processes that were forked from a program with threads: they may wait for ever.
inline constexpr std::string_view kForkOfThreads = "fork-of-threads";

/// Tasks that have yet to connect. Printed at each start.
inline constexpr std::string_view kTasksMissing = "jax-tasks-missing";

/// A process that waits for a lock, perhaps for a moment.
inline constexpr std::string_view kWaitsForLock = "waits-for-lock";

/// A dump of Python's stacks after a crash, or after a signal that aborted a process that waited.
inline constexpr std::string_view kDumpOfCrash = "dump-of-crash";

/// A dump of Python's stacks without a crash or a timeout above it.
inline constexpr std::string_view kDumpOnSignal = "dump-on-signal";

/// Conclusions from the lines of all ranks, when the other lines only show that a peer is gone.
inline constexpr std::string_view kRankFinishedFirst = "rank-finished-first";
inline constexpr std::string_view kRankDidNotJoin = "rank-did-not-join";
inline constexpr std::string_view kRankLeftFirst = "rank-left-first";
inline constexpr std::string_view kTaskEndedFirst = "task-ended-first";
inline constexpr std::string_view kProcessMissing = "process-missing";

/// Lines of launchers about the exit code of a task.
inline constexpr std::string_view kTaskExitCode = "srun-exit-code";

/// Rules for a rank whose peer is gone or absent.
inline constexpr std::array<std::string_view, 8> kLostPeer = {
    "gloo-peer-closed",  "gloo-timeout",    "nccl-peer-closed",  "nccl-proxy-failed",
    "nccl-remote-error", "store-host-gone", "store-key-missing", "watchdog-timeout"};
/// Rules for processes that did not all connect at the start.
inline constexpr std::array<std::string_view, 4> kNotAllConnected = {
    "jax-not-registered", "jax-tasks-missing", "clients-missing", "rendezvous-timeout"};

/// Whether the name is one of them.
inline bool is_among(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// A line with a loss that is not a number. Training continues without effect.
inline constexpr std::string_view kLossIsNan = "loss-is-nan";

/// A failure that the program reports in its own words.
inline constexpr std::string_view kOwnError = "own-error";

/// The tables of rules/.
std::span<const FailureRule> record_rules();
std::span<const FailureRule> slurm_rules();
std::span<const FailureRule> submit_rules();
std::span<const FailureRule> memory_rules();
std::span<const FailureRule> nccl_rules();
std::span<const FailureRule> rendezvous_rules();
std::span<const FailureRule> collective_rules();
std::span<const FailureRule> jax_rules();
std::span<const FailureRule> cuda_rules();
std::span<const FailureRule> limit_rules();
std::span<const FailureRule> script_rules();
std::span<const FailureRule> tool_rules();
std::span<const FailureRule> native_rules();
std::span<const FailureRule> data_rules();
std::span<const FailureRule> program_rules();
std::span<const FailureRule> model_rules();
std::span<const FailureRule> library_rules();
std::span<const FailureRule> python_rules();
std::span<const FailureRule> file_rules();
std::span<const FailureRule> environment_rules();
std::span<const FailureRule> noise_rules();
/// Reasons that a rank reported, without a more specific rule.
std::span<const FailureRule> reported_reason_rules();

/// All rules, specific ones first: the first match of a line applies.
const std::vector<const FailureRule*>& failure_rules();

}  // namespace stoker::diagnose
