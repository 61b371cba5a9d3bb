// What checkpoints a directory holds and whether each is whole. Used by `stoker checkpoint list` and
// `verify`, by the supervisor to find the step to resume from, and by Saver for retention. Thread-safe: no
// state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/strong.h"
#include "base/time.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/read/step_reader.h"

namespace stoker::checkpoint {

/// How far a check goes.
enum class Depth {
  structure,  ///< the manifest's own CRC-32C; presence, length and header of every file
  bytes,      ///< and every byte of data
};

/// What a step folder is.
enum class StepState {
  valid,
  writing,  ///< a live writer has not committed it yet
  torn,     ///< not whole: damaged, or its writer died
};
constexpr std::string_view to_text(StepState state) {
  return state == StepState::valid ? "valid" : state == StepState::writing ? "writing" : "torn";
}

/// One step found in a directory.
struct StepInfo {
  Path folder;
  Step step;
  StepState state = StepState::torn;
  std::string why;  ///< what is wrong with a torn one: "rank 3's file is missing (killed while writing)"
  std::uint64_t bytes = 0;
  double written = 0;  ///< Unix seconds; without a manifest: when the folder was last changed
  // From the manifest; zero without one.
  WorldSize world_size{0};
  std::string run;
  double stall_s = 0;
  double write_s = 0;
  State state_values;  ///< Manifest::state
};

/// Every step of a directory, newest first, those being written and those left by dead writers included.
/// not_found when the directory is missing.
Result<std::vector<StepInfo>> list_steps(const Path& directory, Depth depth, WallTime now);

/// One committed step, as list_steps shows it: one that a newer Stoker wrote is torn, with the reason in
/// `why`. not_found when it is gone, cancelled when `progress` asked to stop.
Result<StepInfo> look_at_step(const Path& directory, Step step, Depth depth, Progress& progress);

/// What verify finds.
struct StepReport {
  StepInfo info;
  std::vector<Damage> damages;  ///< empty when valid
  std::uint64_t files = 0;
  std::uint64_t tensors = 0;
};

/// Checks one step folder. Damage is in the report, not an error; not_found when there is no such folder,
/// cancelled when `progress` asked to stop.
Result<StepReport> verify_step(const Path& folder, Depth depth, Progress& progress);
Result<StepReport> verify_step(const Path& folder, Depth depth);

/// The newest step whose every byte is good, or not_found naming those passed over.
Result<Path> latest_valid(const Path& directory);

/// The committed steps of a directory in ascending order, whole or not. Empty when the directory is missing.
Result<std::vector<Step>> step_folders(const Path& directory);

/// not_found "<directory>: no checkpoint", or "...: no valid checkpoint (step-200: <why>)".
Status no_valid_step(const Path& directory, const std::vector<SkippedStep>& skipped);

}  // namespace stoker::checkpoint
