// Exports a step to plain safetensors files: a single file, or a folder with an index like Hugging Face's,
// which torch's distributed checkpoint reads too. Used by `stoker checkpoint convert`. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/layout.h"
#include "stoker/bytes.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::checkpoint {

/// Tensors to export.
struct ExportOptions {
  StepPart part = StepPart::model;
  /// Tensor names, name prefixes up to a dot, or glob patterns; empty: all.
  std::vector<std::string> only;
  std::string strip;        ///< name prefix to remove: "backbone."
  ByteCount file_bytes{0};  ///< maximum file size in a folder; 0: a single file
};

struct Exported {
  std::uint64_t tensors = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

/// Exports the step in `step` to `target`: a file if its name ends in ".safetensors", otherwise a folder.
/// Every byte is verified first. The target appears by one rename, synced. Errors: exists; invalid if no
/// tensor matches or two tensors would have the same name; corrupt if the step is damaged.
Result<Exported> export_step(const Path& step, const Path& target, const ExportOptions& options,
                             Progress& progress);

/// Whether a pattern of ExportOptions::only matches the tensor.
bool is_named(const std::string& tensor, const std::vector<std::string>& patterns);

}  // namespace stoker::checkpoint
