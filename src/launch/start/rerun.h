// Runs a run's job again from the start, as a new run, and lists the differences. Used by `stoker rerun`.
// Thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "launch/start/run.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::launch {

/// A difference that may change the result.
struct Drift {
  std::string what;  ///< "code", "data.train", "packages", "job file", "stoker", "host"
  std::string then;
  std::string now;
  std::string note;  ///< instead of then and now: "uncommitted changes differ"
};
/// "data.train: version 7c1f9e02 then, 9a00b1ce now".
std::string to_text(const Drift& drift);

/// The run's first job, with `settings` applied, as a request for a new run. Paths are unchanged.
Result<Request> rerun_request(const record::RunFolder& run, const std::vector<std::string>& settings);

/// The differences between the run's capsule and now. Queries git and the interpreter, so it takes as long as
/// they do. Skips facts that are unknown on either side.
std::vector<Drift> find_drift(const record::RunFolder& run, const job::Job& job);

}  // namespace stoker::launch
