// What `stoker explain` says: of a run, a job or logs, as text and as JSON.
#pragma once

#include <optional>
#include <string>

#include "base/language/words.h"
#include "cli/output.h"
#include "explain/failure/failure.h"
#include "launch/life.h"
#include "slurm/queue/job_table.h"

namespace stoker::cli {

/// Why a job waits.
struct Waiting {
  std::string reason;  ///< Slurm's word
  std::string words;   ///< the same in plain ones; "" for one that is not known
  std::string sooner;  ///< what would let it start sooner; may be empty
  bool is_for_ever = false;
  std::optional<double> start;  ///< when it is expected to start, Unix seconds
};
Waiting waiting_of(const slurm::JobFacts& job, const Words& words);

struct Answer {
  std::string kind;  ///< "run", "job" or "log"
  std::string name;  ///< "run 2026-...", "job 7", "train.log"
  std::optional<launch::Life> life;
  std::string note;  ///< the status of it in words; may be empty
  std::optional<Waiting> waiting;
  std::optional<explain::Diagnosis> diagnosis;
};

/// Prints it and gives the exit code: 1 for a failure whose cause is not known.
int print_answer(const Answer& answer, const Words& words, Output& out);

}  // namespace stoker::cli
