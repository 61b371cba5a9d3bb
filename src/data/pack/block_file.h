// A file that is written once, front to back, in whole hash blocks, and knows their hashes afterwards.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "format/manifest.h"
#include "format/tar.h"

namespace stoker::data {

class BlockFile final : public formats::ByteSink {
 public:
  /// Creates or truncates the file.
  static Result<BlockFile> create(const Path& path);

  Status write(std::span<const std::byte> data) override;
  /// Writes what is left, syncs and closes. Nothing may be written after it.
  Status finish();

  std::uint64_t bytes() const { return bytes_; }
  /// SHA-256 of each 4 MiB; complete after finish().
  const std::vector<Digest>& blocks() const { return blocks_; }

 private:
  explicit BlockFile(File file);
  Status flush();

  File file_;
  std::vector<std::byte> buffer_;
  std::vector<Digest> blocks_;
  std::uint64_t bytes_ = 0;
};

}  // namespace stoker::data
