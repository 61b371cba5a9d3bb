// Safetensors files of other tools, sharded or not, as a step of Stoker. Used by `stoker checkpoint convert`.
// Thread-safe: no state.
#pragma once

#include "base/progress.h"
#include "base/status.h"
#include "base/tensor_view.h"
#include "base/text.h"

namespace stoker::checkpoint {

struct Imported {
  std::uint64_t tensors = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

/// Makes the step `target` ("<directory>/step-<n>") of the tensors in `source`: a .safetensors file, or a
/// folder of them, whose DCP_SHARDING_INFO says where the pieces of a tensor belong. They become its part
/// `model`, and are in memory meanwhile. Corrupt "<source>: tensor 'w': ..." when pieces leave a hole or
/// overlap; exists when the step is there; invalid when `target` is not named so.
Result<Imported> import_step(const Path& source, const Path& target, Progress& progress);

}  // namespace stoker::checkpoint
