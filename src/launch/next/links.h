// How many jobs a chain needs: from epochs per hour where earlier runs or attempts have told them, else from
// the time that the job file gives it. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "job/job.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// What an epoch took, where it is known.
struct Pace {
  double epoch_seconds = 0;
  double epochs_left = 0;
  std::string from;  ///< the run that it was measured in
};

/// From the last attempts of `resumed`, else of the newest run with the job's name, model, data and ranks.
/// Nothing for a command, whose epochs nobody knows.
std::optional<Pace> measured_pace(const job::Job& job, const std::optional<record::RunFolder>& resumed);

/// A chain's jobs at most.
struct Links {
  int count = 0;    ///< 0: no chain
  std::string why;  ///< "88 epochs of 14 min at 20 h a link, and one to spare"
};
Links count_links(const job::Job& job, const std::optional<Pace>& pace);

}  // namespace stoker::launch
