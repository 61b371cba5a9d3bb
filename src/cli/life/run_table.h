// Runs as `stoker status` shows them: one line each, as a table or as JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/output.h"
#include "launch/life.h"
#include "observe/doubts.h"
#include "observe/progress.h"
#include "record/run_folder.h"

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
  std::vector<observe::Doubt> doubts;  ///< only looked for where one run is asked for
  Status problem;                      ///< the folder could not be opened
};

/// All of them with one look at the scheduler.
std::vector<RunLine> look_at_runs(const std::vector<record::ListedRun>& listed, slurm::Scheduler& scheduler);

/// What is shown of it beside numbers that change all the time: state and note.
std::string state_of(const RunLine& line);
std::string note_of(const RunLine& line);

void print_runs(const std::vector<RunLine>& lines, Output& out);
/// As JSON: an object for each, a list.
std::string json_of(const std::vector<RunLine>& lines);

}  // namespace stoker::cli
