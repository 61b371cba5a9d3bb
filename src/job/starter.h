// Generates the job file that `stoker init` writes. Pure function of its input. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stoker/status.h"
#include "stoker/text.h"

namespace stoker::job {

/// A dataset in the folder.
struct FoundDataset {
  std::string path;  ///< as written to the job file, relative to it
  std::vector<std::string> splits;
  bool is_trainable = false;    ///< contains labelled images
  std::uint32_t width_max = 0;  ///< maximum image width; 0 unknown
};

/// The contents of a folder, as far as a job can use them.
struct FolderInfo {
  std::string name;
  std::optional<std::string> script;  ///< "train.py"
  std::optional<std::string> venv;    ///< ".venv"
  std::optional<FoundDataset> dataset;
};

/// Finds scripts and virtual environments in a folder; the caller, who can read them, adds datasets.
FolderInfo inspect_folder(const Path& folder);

/// A commented job file that load accepts: the script if there is one, else the built-in trainer on the
/// dataset, else a placeholder command.
std::string starter_text(const FolderInfo& facts);

}  // namespace stoker::job
