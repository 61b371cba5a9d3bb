// A step as plain safetensors files that every tool opens: one file, or a folder with an index as Hugging
// Face's libraries write it, which torch's distributed checkpoint reads too. Used by `stoker checkpoint
// convert`. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/progress.h"
#include "base/status.h"
#include "checkpoint/layout.h"

namespace stoker::checkpoint {

/// What of a step is written.
struct ExportOptions {
  Part part = Part::model;
  /// Names of tensors, or beginnings of them up to a dot, or patterns as a shell's; empty: all.
  std::vector<std::string> only;
  std::string strip;        ///< taken off the front of names that have it: "backbone."
  ByteCount file_bytes{0};  ///< of a folder: a new file is begun beyond that; 0: one file
};

struct Exported {
  std::uint64_t tensors = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

/// Writes the step in `step` to `target`: a file when its name ends in ".safetensors", else a folder. Every
/// byte is checked first. It appears by one rename, synced. Exists when there is something; invalid when
/// nothing is named so, or two tensors would have the same name; corrupt when the step is damaged.
Result<Exported> export_step(const Path& step, const Path& target, const ExportOptions& options,
                             Progress& progress);

/// Whether a pattern of ExportOptions::only names the tensor.
bool is_named(const std::string& tensor, const std::vector<std::string>& patterns);

}  // namespace stoker::checkpoint
