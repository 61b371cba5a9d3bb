// The same run once more: its job from the start, as a run of its own, and what is no longer as it was then.
// Used by `stoker rerun`. Thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "launch/run.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// Something that may make the new run come out otherwise.
struct Drift {
  std::string what;  ///< "code", "data.train", "packages", "job file", "stoker", "host"
  std::string then;
  std::string now;
  std::string note;  ///< in place of then and now: "uncommitted changes differ"
};
/// "data.train: version 7c1f9e02 then, 9a00b1ce now".
std::string to_text(const Drift& drift);

/// The run's own first job, with `settings` laid over it, as a request for another run. Paths are as they
/// were.
Result<Request> rerun_request(const record::RunFolder& run, const std::vector<std::string>& settings);

/// What differs between then, as the run's capsule has it, and now. Asks git and the interpreter, so it takes
/// as long as they do. What either side does not know is not compared.
std::vector<Drift> find_drift(const record::RunFolder& run, const job::Job& job);

}  // namespace stoker::launch
