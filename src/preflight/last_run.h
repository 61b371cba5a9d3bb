// Facts of the newest run with the job's name, for checks before the next run. Thread-compatible values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "job/job.h"
#include "record/capsule.h"
#include "record/run_folder.h"

namespace stoker::preflight {

struct SavedCheckpoint {
  std::uint64_t bytes = 0;
  std::string run;  ///< the id of the run
};

/// The newest run of this name with an attempt, among the 20 newest.
std::optional<record::RunFolder> last_run(const job::Job& job);

/// The last checkpoint in the run's events; nothing without one.
std::optional<SavedCheckpoint> last_checkpoint(const record::RunFolder& run);

/// Size of a checkpoint of the built-in trainer's model and optimizer; nothing for an unknown model size.
/// `classes`: of its data.
std::optional<std::uint64_t> checkpoint_bytes(const job::TrainOptions& train, std::uint64_t classes);

}  // namespace stoker::preflight
