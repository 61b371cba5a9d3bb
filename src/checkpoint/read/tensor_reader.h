// Reads bytes of a step's tensors from the files that contain their rows. Used by diff and convert.
// Thread-safe: files are opened once and only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "checkpoint/manifest.h"
#include "stoker/status.h"

namespace stoker::checkpoint {

/// Tensors of one step. Does not verify CRC-32C: call verify_files() first.
class TensorReader {
 public:
  /// Opens every file of the step. `manifest` belongs to `folder`.
  static Result<TensorReader> open(const Path& folder, const StepManifest& manifest);

  /// Reads bytes of a tensor in C order, from `offset` on. REQUIRES: the manifest has the tensor, and the
  /// range is inside it.
  Status read(StepPart part, const std::string& name, std::uint64_t offset, std::span<std::byte> out) const;

 private:
  // Bytes [begin, end) of a tensor are at offset `at` of a file.
  struct ByteRange {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::size_t file = 0;
    std::uint64_t at = 0;
  };

  std::vector<File> files_;
  std::map<std::pair<StepPart, std::string>, std::vector<ByteRange>> tensors_;  // ranges in ascending order
};

}  // namespace stoker::checkpoint
