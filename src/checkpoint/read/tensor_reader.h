// Bytes of a step's tensors, wherever their rows lie. Used by diff and convert. Thread-safe: files are opened
// once and only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "checkpoint/manifest.h"

namespace stoker::checkpoint {

/// The tensors of one step, read piece by piece. Checks no CRC-32C: read_files() comes before.
class TensorReader {
 public:
  /// Opens every file of the step. `manifest` is the one of `folder`.
  static Result<TensorReader> open(const Path& folder, const Manifest& manifest);

  /// Bytes of a tensor in C order, from `offset` on. REQUIRES: the manifest has the tensor, and it is that
  /// long.
  Status read(Part part, const std::string& name, std::uint64_t offset, std::span<std::byte> out) const;

 private:
  // Bytes [begin, end) of a tensor lie from `at` on in a file.
  struct Stretch {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::size_t file = 0;
    std::uint64_t at = 0;
  };

  std::vector<File> files_;
  std::map<std::pair<Part, std::string>, std::vector<Stretch>> tensors_;  // stretches in ascending order
};

}  // namespace stoker::checkpoint
