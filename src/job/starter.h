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

/// A folder of image files, which has to be packed first.
struct FoundImages {
  std::string path;    ///< "." for the folder itself
  std::string packed;  ///< the dataset that packing it creates
  std::vector<std::string> splits;
  bool is_labelled = false;  ///< in class folders
};

/// The contents of a folder, as far as a job can use them.
struct FolderInfo {
  std::string name;
  std::optional<std::string> script;  ///< "train.py"
  std::optional<std::string> venv;    ///< ".venv"
  std::vector<FoundDataset> datasets;
  std::optional<FoundImages> images;  ///< only without script and datasets
};

/// The roles of FolderInfo::datasets in the job.
struct DatasetRoles {
  const FoundDataset* training = nullptr;
  const FoundDataset* validation = nullptr;  ///< only if it is not a split of `training`
  std::vector<const FoundDataset*> unused;
};

/// Chooses by splits, then by names: "train" in a name, "val" or "test" for the validation.
DatasetRoles assign_roles(const std::vector<FoundDataset>& datasets);

/// Finds scripts and virtual environments in a folder; the caller, who can read them, adds datasets.
FolderInfo inspect_folder(const Path& folder);

/// A commented job file that load accepts: the script if there is one, else the built-in trainer on the
/// dataset (or on the one that packing the labelled images creates), else a placeholder command.
std::string starter_text(const FolderInfo& facts);

}  // namespace stoker::job
