// The result of the last `stoker hello JOB`, stored next to the runs, so that it is known later whether the
// ranks of that job have communicated before: <runs>/hello.json. Format: docs/formats/run.md#hello.
// Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "stoker/status.h"

namespace stoker::record {

struct HelloRecord {
  double time = 0;  ///< Unix seconds
  std::string job;  ///< the job's name
  std::vector<std::string> hosts;
  int ranks = 0;
  bool is_ready = false;              ///< no finding that would make a job fail
  bool all_reduced = false;           ///< all ranks together, with correct results
  std::string interface;              ///< used by rank 0; "" unknown
  double all_reduce_bytes_per_s = 0;  ///< for the fastest size; 0 not measured
};

Path hello_path(const Path& runs);
/// Creates `runs` if it is missing.
Status write_hello(const Path& runs, const HelloRecord& hello);
/// NotFound if it does not exist, Corrupt if it is not valid.
Result<HelloRecord> read_hello(const Path& runs);

}  // namespace stoker::record
