// Builds stoker-train, and libstoker_train.a beside it, for a torch from the trainer kit: sources of the
// training, headers, and a static library with everything that does not depend on torch. Used by `stoker
// build-trainer` and by script/package. Thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "stoker/bytes.h"
#include "stoker/progress.h"
#include "trainers/torch.h"

namespace stoker::trainers {

/// What to build, and with what.
struct BuildRequest {
  Path kit;  ///< with kit.json, include/, src/, units/ and lib/libstoker.a
  Torch torch;
  std::string compiler;  ///< a g++: a path, or a name in PATH
  Path target;           ///< the program to write; replaced at once when it is complete
  unsigned jobs = 1;     ///< compilers at once
  /// The program does not contain the path of torch, `stoker` passes it to the ranks. No libstoker_train.a.
  bool is_relocatable = false;
};

/// The kit beside a `stoker` in this folder.
Path trainer_kit(const Path& program_folder);

/// Allowed for each compiler that runs at once: an estimate.
constexpr ByteCount kMemoryPerJob = 1536_MiB;

/// NotFound lists everything that is missing: kit, compiler, headers of torch. Invalid with the compiler's
/// first error, and all of them in build.log beside the target, when the sources do not compile; Cancelled.
/// `progress` counts sources.
Status build_trainer(const BuildRequest& request, Progress& progress);

}  // namespace stoker::trainers
