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
  /// Headers of CUDA and of the NCCL that torch was built with, where they are not beside torch; may be
  /// empty.
  Path cuda_headers;
  std::string compiler;  ///< a g++: a path, or a name in PATH
  Path target;           ///< the program to write; replaced at once when it is complete
  unsigned jobs = 1;     ///< compilers at once
  /// The program does not contain the path of torch, `stoker` passes it to the ranks. No libstoker_train.a.
  /// Its GPU part is stoker-train-cuda.so beside it, and also works with a torch for CPUs.
  bool is_relocatable = false;
};

/// How the program uses GPUs: not, in itself, or by the library beside it.
enum class GpuPart { none, linked, library };

/// The kit beside a `stoker` in this folder.
Path trainer_kit(const Path& program_folder);

/// Allowed for each compiler that runs at once: an estimate.
constexpr ByteCount kMemoryPerJob = 1536_MiB;

/// A torch for CUDA gets a trainer with GPUs, and so does a relocatable build with CUDA's headers. NotFound
/// lists everything that is missing: kit, compiler, headers. Invalid with the compiler's first error, and all
/// of them in build.log beside the target, when the sources do not compile; Cancelled. `progress` counts
/// sources.
Result<GpuPart> build_trainer(const BuildRequest& request, Progress& progress);

}  // namespace stoker::trainers
