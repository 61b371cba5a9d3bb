// The cause of a run's end, for `stoker explain` and `stoker report`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/finding.h"
#include "diagnose/failure.h"
#include "launch/status/life.h"
#include "record/run_folder.h"

namespace stoker::cli {

struct RunDiagnosis {
  diagnose::Diagnosis diagnosis;
  std::vector<Finding> launches;  ///< about launchers, besides the cause; each has evidence
};

/// Reads the records and logs of an attempt (0: the last one) of a run in the state `life`. NotFound for an
/// attempt that does not exist.
Result<RunDiagnosis> diagnose_run(const record::RunFolder& run, const launch::RunLife& life,
                                  std::int64_t attempt);

/// Adds the state in which a run or job ended to the facts, if it is more precise than "failed".
void add_state_evidence(launch::Life life, const std::string& note, const std::string& where,
                        diagnose::FailureFacts& facts);

}  // namespace stoker::cli
