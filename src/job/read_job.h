// Reads a job from text in memory. Used by load and by the fuzz harness. Thread-safe: no state.
#pragma once

#include <string>

#include "job/job.h"

namespace stoker::job {

/// The text of a job file.
struct TextSource {
  std::string name;  ///< name in error messages
  std::string text;
  Path folder;  ///< absolute; base of relative paths in the text
};

/// Like load. REQUIRES: options.current_directory is absolute.
Result<Job> read_job(const TextSource& source, const LoadOptions& options);

}  // namespace stoker::job
