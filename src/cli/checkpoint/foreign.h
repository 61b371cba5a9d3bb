// Checkpoints of other tools as steps of Stoker: safetensors, and files of torch.save, which only Python
// reads.
#pragma once

#include <cstdint>

#include "cli/output.h"
#include "stoker/status.h"
#include "stoker/text.h"

namespace stoker::cli {

/// The source, and what the conversion wrote.
struct ConversionResult {
  Path source;
  std::uint64_t tensors = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

/// Whether it is a file of torch.save, by its name.
bool is_pickled(const Path& path);
/// Whether it is a safetensors file, or a folder of them that is not a Stoker checkpoint.
bool is_foreign(const Path& path);

/// Converts with python3 from or to a file of torch.save. Unavailable without torch or the module stoker.
Result<ConversionResult> convert_with_python(const Path& source, const Path& target);
/// Creates the step `target` from either kind. As import_step() and convert_with_python().
Result<ConversionResult> import_foreign(const Path& source, const Path& target, Output& out);

}  // namespace stoker::cli
