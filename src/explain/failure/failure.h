// Why something failed, from the logs of its ranks and from what the records and the scheduler say of it:
// facts, rules over them, one cause, its evidence, its cure. Used by `stoker explain`. Looks and changes
// nothing. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/language/words.h"
#include "base/status.h"

namespace stoker::explain {

/// A log to read.
struct FailedLog {
  Path file;
  std::string name;  ///< how people know it: "rank-0003.log"
  int rank = -1;     ///< whose it is; -1: its lines may tell
  int fd = -1;       ///< 0 and up: an open descriptor that is read in place of the file
};

/// Where words about a run's last collectives come from.
inline constexpr std::string_view kFlightRecorder = "flight recorder";

/// A fact in words, from the run's records or from the scheduler: rules match it like a line of a log.
struct FailureWord {
  std::string where;  ///< "records", "Slurm", kFlightRecorder
  std::string text;
  int rank = -1;
};

/// All that is known.
struct FailureFacts {
  std::vector<FailedLog> logs;
  std::vector<FailureWord> words;
  std::optional<int> first_rank;  ///< that failed first, where the records tell
  /// The job of Slurm it ran in, "" for none: where to look. Nothing where that is not known.
  std::optional<std::string> job = std::nullopt;
  std::vector<Finding> also;  ///< what is known of it beside a failure; each with evidence
};

/// How sure a diagnosis is.
enum class Certainty {
  known,    ///< a line says so
  likely,   ///< what is seen mostly comes of this
  unknown,  ///< no rule fits
};
/// "known", "likely", "unknown": the values of the field `certainty` in JSON output.
std::string_view to_text(Certainty certainty);

struct Diagnosis {
  Certainty certainty = Certainty::unknown;
  std::string rule;  ///< its name; "" where none fits
  std::string cause;
  std::optional<int> rank;         ///< that failed first
  std::vector<Evidence> evidence;  ///< of an unknown one: the most telling lines, three at most
  std::string followed;  ///< what only came of it: "3 ranks: the peer's connection closed"; may be empty
  std::string cure;
  std::string confirm;               ///< a command that would show it; may be empty
  std::vector<Finding> also;         ///< what costs time or hurts beside it
  std::vector<std::string> notes;    ///< about logs that could not be read as they should
  std::vector<std::string> missing;  ///< why a log could not be read at all
  std::uint64_t bytes = 0;           ///< of text that was read
};

/// Reads the logs and judges. A log that cannot be read is told in the diagnosis. What logs, records and the
/// scheduler say is quoted as it is.
Diagnosis explain_failure(const FailureFacts& facts, const Words& words = Words());

/// What a rule looks for; for `stoker explain --rules` and the docs.
struct FailureRuleText {
  std::string_view name;
  std::string_view kind;  ///< "root", "hang", "outside", ...
  std::string_view cause;
  std::string_view cure;
  std::string_view example;
  std::string_view origin;
};
std::vector<FailureRuleText> failure_rule_texts();

}  // namespace stoker::explain
