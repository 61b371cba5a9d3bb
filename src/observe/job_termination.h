// Slurm's messages about the end of one attempt of a run. A job that Slurm restarts continues in the log of
// the submitted attempt, so one log may contain several. Used by status, wait and the report. Thread-safe: no
// state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "record/run_folder.h"
#include "slurm/queue/batch_log.h"

namespace stoker::observe {

/// Slurm's last message about job `id` during this attempt; nothing if the message or the log is missing.
/// Reads only the end of the log.
std::optional<slurm::JobTermination> job_termination(const record::RunFolder& run,
                                                     const record::Attempt& attempt, std::string_view id);

/// Whether this message is about the end of an attempt that recorded one at `ended` (Unix seconds; 0: none)
/// with `exit_code`: an attempt that ended before its job was ended keeps its own ending. A preempted job is
/// different: its ranks get SIGTERM first, and Slurm ends the job after its grace time (GraceTime).
bool explains_end(const slurm::JobTermination& message, double ended, std::optional<int> exit_code);

/// The part of a batch script's log that attempt `number` of a run printed. `first` is the attempt that owns
/// the log, or 0 if `log` is only its end.
std::string_view attempt_section(std::string_view log, std::string_view run_id, int first, int number);

/// Short result of an attempt that Slurm ended: "preempted", "requeued", "timeout", ...
std::string_view termination_text(slurm::JobState state);

}  // namespace stoker::observe
