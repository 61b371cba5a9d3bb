// What the last `stoker hello JOB` found, kept beside the runs for whoever asks later whether the ranks of
// that job have ever met: <runs>/hello.json. Format: docs/formats/run.md#hello. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace stoker::record {

struct HelloRecord {
  double time = 0;  ///< Unix seconds
  std::string job;  ///< the job's name
  std::vector<std::string> hosts;
  int ranks = 0;
  bool is_well = false;               ///< nothing was found that would lose a job
  bool all_reduced = false;           ///< all ranks together, every number right
  std::string interface;              ///< that rank 0 used; "" unknown
  double all_reduce_bytes_per_s = 0;  ///< the fastest of the sizes; 0 not measured
};

Path hello_path(const Path& runs);
/// Makes `runs` when it is missing.
Status write_hello(const Path& runs, const HelloRecord& hello);
/// NotFound without one, Corrupt when the file is none.
Result<HelloRecord> read_hello(const Path& runs);

}  // namespace stoker::record
