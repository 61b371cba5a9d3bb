// The output of `stoker explain` for a run, a job or logs, as text and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/finding.h"
#include "base/language/translator.h"
#include "cli/output.h"
#include "diagnose/failure.h"
#include "launch/status/life.h"
#include "slurm/queue/job_table.h"

namespace stoker::cli {

/// Why a job is pending.
struct PendingReason {
  std::string reason;       ///< Slurm's reason code
  std::string description;  ///< its description; "" for an unknown code
  std::string advice;       ///< how to start sooner; may be empty
  bool is_permanent = false;
  std::optional<double> start;  ///< expected start, Unix seconds
};
PendingReason pending_reason_of(const slurm::JobInfo& job, const Translator& words);

struct Explanation {
  std::string kind;  ///< "run", "job" or "log"
  std::string name;  ///< "run 2026-...", "job 7", "train.log"
  std::optional<launch::Life> life;
  std::string note;  ///< details of the state; may be empty
  std::optional<PendingReason> waiting;
  std::optional<diagnose::Diagnosis> diagnosis;
  std::vector<Finding> launches = {};  ///< about launchers, besides the cause; each has evidence
};

/// The cause with its rank and node: "rank 1 (n2): killed for memory". REQUIRES: it is known.
std::string cause_text(const diagnose::Diagnosis& diagnosis, const Translator& words);

/// Prints the explanation and returns the exit code: 1 for a failure with an unknown cause.
int print_explanation(const Explanation& explanation, const Translator& words, Output& out);

}  // namespace stoker::cli
