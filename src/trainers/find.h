// Which stoker-train runs a job: the one beside `stoker` in a build from source; in a package, the one for
// the torch of the job's Python. Thread-safe: no state.
#pragma once

#include <optional>
#include <vector>

#include "trainers/torch.h"

namespace stoker::trainers {

/// Where to look.
struct TrainerSearch {
  Path program_folder;       ///< of `stoker`
  std::optional<Path> venv;  ///< of the job: no other Python counts
  Environment environment;   ///< of the ranks: PATH, HOME, VIRTUAL_ENV, CONDA_PREFIX
};

/// A trainer, ready to start.
struct Trainer {
  Path program;
  /// The folder of libtorch, for LD_LIBRARY_PATH; empty: the program knows it.
  Path libraries;
};

/// The Pythons whose torch may count, best first: of the job's virtual environment alone, or of the active
/// environment, beside `stoker`, and python3 of PATH.
std::vector<std::string> pythons_of(const TrainerSearch& search);

/// The first torch of these Pythons. NotFound names the first Python.
struct FoundTorch {
  std::string python;
  Torch torch;
};
Result<FoundTorch> find_torch(const TrainerSearch& search, Deadline deadline);

/// The torch in `folder` or of `python`, if one of them is given, else as find_torch(). Within two minutes.
Result<Torch> choose_torch(const Path& folder, const std::string& python, const TrainerSearch& search);

/// Trainers that this user has built for this version of Stoker: $XDG_DATA_HOME or ~/.local/share.
Path own_trainers(const Environment& environment);
/// The folder in it for one torch.
Path own_trainer(const Environment& environment, const Torch& torch);

/// The minor versions of torch that `stoker` in this folder comes with a trainer for: "2.11", "2.13".
std::vector<std::string> packaged_torches(const Path& program_folder);

/// NotFound with `stoker build-trainer` as cure where no trainer is for that torch.
Result<Trainer> find_trainer(const TrainerSearch& search, Deadline deadline);

}  // namespace stoker::trainers
