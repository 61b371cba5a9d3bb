// A file that is written once, front to back, and knows the hashes of its blocks afterwards. Small pieces are
// gathered; all is hashed and written while it is in the core's own cache. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "format/manifest.h"
#include "format/tar.h"

namespace stoker::data {

class BlockFile final : public formats::ByteSink {
 public:
  /// Creates or truncates the file.
  static Result<BlockFile> create(const Path& path, formats::BlockHash hash);

  Status write(std::span<const std::byte> data) override;
  /// Writes the rest, syncs and closes. Nothing may be written after it.
  Status finish();

  /// After finish():
  std::uint64_t bytes() const { return bytes_; }
  const std::vector<Digest>& blocks() const { return blocks_; }

 private:
  BlockFile(File file, formats::BlockHash hash);
  Status flush();
  Status put(std::span<const std::byte> data);

  File file_;
  std::vector<std::byte> buffer_;
  formats::BlockHasher hash_;  // of the block at hand
  std::uint64_t bytes_ = 0;
  std::vector<Digest> blocks_;
};

}  // namespace stoker::data
