// Lists the checkpoints of a directory and checks them. Used by `stoker checkpoint list` and `verify`, by the
// supervisor to find the step to resume from, and by Saver for retention. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/read/step_reader.h"
#include "stoker/checkpoint.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/time.h"

namespace stoker::checkpoint {

/// Depth of a check.
enum class Depth {
  structure,  ///< the manifest's own CRC-32C; presence, length and header of every file
  bytes,      ///< and every byte of data
};

/// State of a step folder.
enum class StepState {
  valid,
  writing,  ///< a live writer has not committed it yet
  torn,     ///< invalid: damaged, or its writer died
};
constexpr std::string_view to_text(StepState state) {
  return state == StepState::valid ? "valid" : state == StepState::writing ? "writing" : "torn";
}

/// One step of a directory.
struct StepInfo {
  Path folder;
  Step step;
  StepState state = StepState::torn;
  std::string why;  ///< damage of a torn step: "rank 3's file is missing (killed while writing)"
  std::uint64_t bytes = 0;
  double written = 0;  ///< Unix time; without a manifest: last change of the folder
  // From the manifest; zero without one.
  WorldSize world_size{0};
  std::string run;
  double stall_s = 0;
  double write_s = 0;
  StateValues state_values;  ///< StepManifest::state
};

/// All steps of a directory, newest first, including those being written and leftovers of dead writers.
/// not_found if the directory is missing.
Result<std::vector<StepInfo>> list_steps(const Path& directory, Depth depth, WallTime now);

/// One committed step, as in list_steps(). A step of a newer Stoker is torn, with the reason in `why`.
/// not_found if it is gone, cancelled if `progress` requests a stop.
Result<StepInfo> inspect_step(const Path& directory, Step step, Depth depth, Progress& progress);

/// Result of verify_step().
struct StepReport {
  StepInfo info;
  std::vector<StepDamage> damages;  ///< empty if valid
  std::uint64_t files = 0;
  std::uint64_t tensors = 0;
};

/// Checks one step folder. Damage is in the report and not an error. not_found if there is no such folder,
/// cancelled if `progress` requests a stop.
Result<StepReport> verify_step(const Path& folder, Depth depth, Progress& progress);
Result<StepReport> verify_step(const Path& folder, Depth depth);

/// The newest step with every byte valid, or not_found naming the skipped ones.
Result<Path> latest_valid(const Path& directory);

/// Committed steps of a directory in ascending order, valid or not. Empty if the directory is missing.
Result<std::vector<Step>> step_folders(const Path& directory);

/// not_found "<directory>: no checkpoint", or "...: no valid checkpoint (step-200: <why>)".
Status no_valid_step(const Path& directory, const std::vector<SkippedStep>& skipped);

}  // namespace stoker::checkpoint
