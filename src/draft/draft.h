// Converts a user script to a job file: known constructs become keys, the rest is listed with line numbers.
// Used by `stoker init --from`. Parses the script without executing it. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/allocation.h"
#include "stoker/status.h"

namespace stoker::draft {

/// A part of the script that is not in the job file.
struct Unconverted {
  std::uint32_t line = 1;
  std::string what;  ///< "--output=logs/%j.out", or the beginning of a command
  std::string why;   ///< the reason, and a replacement if there is one
};

/// A file that the job file refers to.
struct DraftFile {
  std::string name;
  std::string text;
};

struct Draft {
  std::string job;                       ///< text of the job file, for job::load
  std::vector<DraftFile> files;          ///< to write next to it
  std::vector<Unconverted> unconverted;  ///< by line
};

struct DraftTarget {
  std::string stem = "job";   ///< the name of the job file without extension; prefix of its files
  slurm::Lookup environment;  ///< for $HOME, $SCRATCH and similar variables in paths
};

/// `name`: the file of the script. Invalid with the line number for a script with a syntax error.
Result<Draft> draft_job(const std::string& name, std::string text, const DraftTarget& target);

}  // namespace stoker::draft
