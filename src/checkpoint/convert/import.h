// Imports safetensors files of other tools, sharded or not, as a step. Used by `stoker checkpoint convert`.
// Thread-safe: no state.
#pragma once

#include "stoker/progress.h"
#include "stoker/status.h"
#include "stoker/tensor_view.h"
#include "stoker/text.h"

namespace stoker::checkpoint {

struct Imported {
  std::uint64_t tensors = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

/// Creates the step `target` ("<directory>/step-<n>") from the tensors in `source`: a .safetensors file, or a
/// folder of them with DCP_SHARDING_INFO for the positions of pieces. They become part `model` and are held
/// in memory meanwhile. Errors: corrupt "<source>: tensor 'w': ..." if pieces overlap or leave a gap; exists;
/// invalid if `target` is not a step folder name.
Result<Imported> import_step(const Path& source, const Path& target, Progress& progress);

}  // namespace stoker::checkpoint
