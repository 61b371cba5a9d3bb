// A job from a text that is in memory already. Used by load and by the fuzz harness. Thread-safe: no state.
#pragma once

#include <string>

#include "job/job.h"

namespace stoker::job {

/// A job file's text.
struct TextSource {
  std::string name;  ///< how mistakes name it
  std::string text;
  Path folder;  ///< absolute; relative paths in the text start here
};

/// As load. REQUIRES: options.current_directory is absolute.
Result<Job> read(const TextSource& source, const LoadOptions& options);

}  // namespace stoker::job
