// The number of jobs in a chain: from the measured epoch time of earlier runs or attempts, else from the
// total time in the job file. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>

#include "job/job.h"
#include "record/run_folder.h"
#include "stoker/time.h"

namespace stoker::launch {

/// Measured time per epoch.
struct EpochEstimate {
  double epoch_seconds = 0;
  double epochs_left = 0;
  std::string from;  ///< the run of the measurement
};

/// From the last attempts of `resumed`, else from the newest run with the same name, model, data and ranks.
/// Nothing for a command, whose epochs are unknown.
std::optional<EpochEstimate> estimate_epochs(const job::Job& job,
                                             const std::optional<record::RunFolder>& resumed);

/// The largest number of jobs in a chain.
struct Links {
  int count = 0;    ///< 0: no chain
  std::string why;  ///< "88 epochs of 14 min at 20 h a link, plus one spare"
};
Links count_links(const job::Job& job, const std::optional<EpochEstimate>& estimate);

}  // namespace stoker::launch
