// The newest run of a job's name in its folder of runs: what it measured is known before the next one.
// Used by what checks a job. Thread-compatible values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "job/job.h"
#include "record/capsule.h"
#include "record/run_folder.h"

namespace stoker::explain {

struct SavedCheckpoint {
  std::uint64_t bytes = 0;
  std::string run;  ///< the id of the run that saved it
};

/// The newest run of this name that has an attempt; of at most 20 that are looked at.
std::optional<record::RunFolder> last_run(const job::Job& job);

/// The last checkpoint that the run's events tell of; nothing when it saved none.
std::optional<SavedCheckpoint> last_checkpoint(const record::RunFolder& run);

/// What one checkpoint of the built-in trainer's model takes, with its optimizer's state; nothing for a model
/// whose size the job file does not tell. `classes` of its data.
std::optional<std::uint64_t> checkpoint_bytes(const job::TrainOptions& train, std::uint64_t classes);

}  // namespace stoker::explain
