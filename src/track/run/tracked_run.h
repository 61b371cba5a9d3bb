// What trackers show about a run beside its points. Values; no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "record/capsule.h"
#include "record/run_folder.h"
#include "record/state.h"

namespace stoker::track {

struct TrackedRun {
  record::RunFolder folder;
  record::RunState state;
  /// `params` of the job file, and the settings of `train`: key and value. Secrets are hidden.
  std::vector<std::pair<std::string, std::string>> params;
  /// Settings that a later attempt changed: "attempt 2: train.epochs" and the new value.
  std::vector<std::pair<std::string, std::string>> changes;
  std::vector<record::DataInfo> data;  ///< empty until the capsule has them
  std::optional<std::uint32_t> task;   ///< of an array: only this task

  bool has_ended() const;
  /// The id of the run, of a task "<id>-task7".
  std::string name() const;
  /// The command of the ranks, on one line.
  std::string command() const;
};

/// Reads the folder. Missing and damaged parts are left out.
TrackedRun describe_run(const record::RunFolder& run);

}  // namespace stoker::track
