// Explains a failure from rank logs, run records and scheduler state: match rules, choose one cause, show
// evidence and cure. Used by `stoker explain`. Read-only. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/language/message.h"
#include "stoker/status.h"

namespace stoker::diagnose {

/// A log to read.
struct FailedLog {
  Path file;
  std::string name;  ///< display name: "rank-0003.log"
  int rank = -1;     ///< its rank; -1: unknown, lines may name it
  int fd = -1;       ///< if >= 0: an open descriptor to read instead of the file
};

/// Source names of records about collectives: from a flight recorder, or from what NCCL's watchdog printed.
inline constexpr std::string_view kFlightRecorder = "flight recorder";
inline constexpr std::string_view kWatchdogSource = "NCCL's watchdog";

/// A message from the run's records or from the scheduler. Rules match it like a log line.
struct FailureRecord {
  std::string where;  ///< "records", "Slurm", kFlightRecorder
  std::string text;
  int rank = -1;
};

/// What the failed program was started from: cures use its terms.
enum class StartKind {
  log,       ///< unknown: any log
  script,    ///< the user's batch script in Slurm
  job_file,  ///< a job file, submitted to Slurm
  local,     ///< a job file, or a command, on this machine
};

/// The input of a diagnosis.
struct FailureFacts {
  std::vector<FailedLog> logs;
  std::vector<FailureRecord> records;
  std::optional<int> first_rank;  ///< the first rank to fail, if recorded
  /// The Slurm job id, "" without Slurm; empty if unknown.
  std::optional<std::string> job = std::nullopt;
  std::vector<Finding> also;  ///< findings besides the failure; each has evidence
  StartKind started_as = StartKind::log;
  std::string run;                           ///< id of the run; "" without one
  std::string started_from;                  ///< path of the job file or script; "" if unknown
  std::map<int, std::string> hosts;          ///< of the ranks, as far as recorded
  std::vector<std::string> unreadable = {};  ///< errors of further files
  /// It ended successfully: only an error that a line of `also` shows can be a cause.
  bool has_succeeded = false;
};

/// The certainty of a diagnosis.
enum class Certainty {
  known,    ///< a line states the cause
  likely,   ///< the usual cause of the evidence
  unknown,  ///< no rule matches
  none,     ///< nothing failed: the logs end with the success of the program
};
/// "known", "likely", "unknown", "none": the values of the field `certainty` in JSON output.
std::string_view to_text(Certainty certainty);

struct Diagnosis {
  Certainty certainty = Certainty::unknown;
  std::string rule;  ///< the name of the rule; "" without a match
  Message cause;
  std::optional<int> rank;         ///< the first rank to fail
  std::string node;                ///< the node that the evidence names; may be empty
  std::vector<Evidence> evidence;  ///< up to three lines; the most notable ones if no rule matches
  Message consequences;            ///< consequences: "3 ranks: the peer's connection closed"; may be empty
  Message cure;
  std::string confirm;               ///< a command that confirms the cause; may be empty
  std::vector<Finding> also;         ///< further findings, such as slow lines
  std::vector<Message> notes;        ///< problems with reading logs
  std::vector<std::string> missing;  ///< errors of unreadable logs
  std::uint64_t bytes = 0;           ///< amount of text read
};

/// Scans the logs and chooses the cause. `Diagnosis::missing` lists unreadable logs. Quoted logs and records
/// are not translated.
Diagnosis explain_failure(const FailureFacts& facts);

/// The texts of a rule, for `stoker explain --rules` and the docs.
struct FailureRuleText {
  std::string_view name;
  std::string_view kind;  ///< "root", "hang", "outside", ...
  std::string_view cause;
  std::string_view cure;
  std::string_view example;
  std::string_view origin;
};
std::vector<FailureRuleText> failure_rule_texts();

}  // namespace stoker::diagnose
