// What Slurm wrote about the end of one attempt of a run. A job that Slurm starts again goes on in the log of
// the attempt that was submitted, so one log may tell of several. Used by status, wait and the report.
// Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "record/run_folder.h"
#include "slurm/script/batch_log.h"

namespace stoker::observe {

/// Slurm's last word about job `id` during this attempt; nothing when it wrote none, or when there is no log.
/// Only the end of the log is read.
std::optional<slurm::BatchEnding> batch_ending(const record::RunFolder& run, const record::Attempt& attempt,
                                               std::string_view id);

/// The part of a batch script's log that attempt `number` of a run printed. `first` is the attempt whose log
/// it is, or 0 when `log` is only the end of it.
std::string_view part_of_attempt(std::string_view log, std::string_view run_id, int first, int number);

/// How an attempt came out, in one word, when Slurm ended it: "preempted", "requeued", "timeout", ...
std::string_view ending_word(slurm::JobState state);

}  // namespace stoker::observe
