// The files of a run's model: its newest checkpoint, or a path of the user. No state.
#pragma once

#include <string>
#include <vector>

#include "stoker/status.h"
#include "stoker/text.h"

namespace stoker::track {

/// What a run registers in MLflow.
struct ModelChoice {
  std::string name;  ///< in the registry; "": nothing is registered
  Path path;         ///< a file or folder; empty: the newest checkpoint
  Path checkpoints;  ///< folder of the run's checkpoints
};

struct ModelFiles {
  std::string label;        ///< "step-200", or the name of the path
  Path folder;              ///< of the files
  std::vector<Path> files;  ///< below `folder`, sorted
};

/// Of a checkpoint in Stoker's format only its model and manifest; of any other folder all regular files.
/// Links are left out. NotFound without a file.
Result<ModelFiles> find_model_files(const ModelChoice& choice);

}  // namespace stoker::track
