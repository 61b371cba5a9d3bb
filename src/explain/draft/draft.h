// A job file made of a batch script of people's own: what has a key becomes one, the rest is kept as a list
// with its lines. Used by `stoker init --from`. Reads the script and runs nothing of it. Thread-safe: no
// state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "slurm/allocation.h"

namespace stoker::explain {

/// Something of the script that the job file does not do.
struct LeftBehind {
  std::uint32_t line = 1;
  std::string what;  ///< "--output=logs/%j.out", or the beginning of the command
  std::string why;   ///< and what does it instead, where something does
};

/// A file that the job file names.
struct DraftFile {
  std::string name;
  std::string text;
};

struct Draft {
  std::string job;               ///< text of the job file; job::load takes it
  std::vector<DraftFile> files;  ///< to be written beside it
  std::vector<LeftBehind> left;  ///< by line
};

struct DraftPlace {
  std::string stem = "job";   ///< the job file's name without its extension; files beside it begin with it
  slurm::Lookup environment;  ///< for $HOME, $SCRATCH and the like in paths
};

/// `name` is the script's file. Invalid for a script that bash cannot read, with the line.
Result<Draft> draft_job(const std::string& name, std::string text, const DraftPlace& place);

}  // namespace stoker::explain
