// The run table of `stoker status`, as text or JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "launch/status/life.h"
#include "observe/live.h"
#include "observe/progress.h"
#include "observe/suspect_lines.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::cli {

/// One run.
struct RunLine {
  std::string id;
  std::string name;
  launch::RunLife life;
  int ranks = 0;
  double elapsed_s = 0;
  std::optional<std::uint32_t> epochs;  ///< planned
  observe::RunProgress progress;
  std::vector<observe::SuspectLine> doubts;             ///< filled only for a single run
  std::optional<std::vector<observe::LiveNode>> nodes;  ///< filled only for a single run
  std::optional<record::RunFolder> folder = {};         ///< unset if it could not be opened
  Status problem;                                       ///< why
};

/// Loads all runs with one query to the scheduler.
std::vector<RunLine> query_runs(const std::vector<record::ListedRun>& listed, slurm::Scheduler& scheduler);

/// The columns that change only with events: state and note.
std::string state_of(const RunLine& line);
std::string note_of(const RunLine& line);

void print_runs(const std::vector<RunLine>& lines, Output& out);
/// A JSON list of runs.
std::string json_of(const std::vector<RunLine>& lines);

}  // namespace stoker::cli
