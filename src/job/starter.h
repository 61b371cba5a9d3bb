// The job file that `stoker init` writes. Pure text from facts. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/text.h"

namespace stoker::job {

/// A dataset that was found.
struct FoundDataset {
  std::string path;  ///< as it is to be written, relative to the job file
  std::vector<std::string> splits;
  bool is_trainable = false;    ///< has labelled images
  std::uint32_t width_max = 0;  ///< of its images; 0 unknown
};

/// What a folder offers to a job.
struct FolderFacts {
  std::string name;
  std::optional<std::string> script;  ///< "train.py"
  std::optional<std::string> venv;    ///< ".venv"
  std::optional<FoundDataset> dataset;
};

/// Looks at a folder for a script and a virtual environment; datasets are for the caller, who can read them.
FolderFacts look_at_folder(const Path& folder);

/// A commented job file that load reads: the script if there is one, else the built-in trainer on the
/// dataset, else a command to be filled in.
std::string starter_text(const FolderFacts& facts);

}  // namespace stoker::job
