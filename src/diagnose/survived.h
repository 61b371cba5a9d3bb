// Which errors of a log its program survived: handled and reported by it, or ended with an earlier attempt.
// Pure functions. Internal to this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/suspect.h"

namespace stoker::diagnose {

/// The line that begins the last attempt of a log in which torchrun or Slurm started the program again; 0
/// without one.
std::uint64_t start_of_last_attempt(const ScanResult& log);

/// Whether all lines of the log come from one process, as far as its hits show.
bool is_of_one_process(const LogScan& log);

/// Whether the log reports the hit as no failure, by its level or in words: "INFO", "falling back".
bool is_harmless(const Suspect& suspect);

/// Whether the process of the hit made progress in its training between the hit and the line `until`. Sees
/// only what the scan remembered: the lines soon after a hit.
bool resumed(const Suspect& suspect, std::uint64_t until);

/// Whether the training that the process of the hit reported continued after it: the same count, higher. A
/// new start would begin at its first step.
bool continued_after(const LogScan& log, const Hit& hit);

/// Whether the hit is one line that its program prints as a warning: "UserWarning: text", "W0615 10:03:11".
bool is_lone_warning(const Hit& hit);

/// Whether the program reported the error itself and may have handled it.
bool is_reported(const Hit& hit);

/// Whether the logs end with the success of the program, and it survived all their errors.
bool ended_well(const std::vector<LogScan>& logs);

/// The errors in logs that ended well, without harmless lines.
std::vector<Suspect> survived_errors(const std::vector<LogScan>& logs);

}  // namespace stoker::diagnose
