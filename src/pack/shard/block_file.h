// A file that is written once, sequentially, and computes the hashes of its blocks. Small writes are
// buffered; data is hashed and written while it is in the core's cache. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "archive/tar.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/sha256/lane.h"
#include "dataset/manifest.h"
#include "stoker/status.h"

namespace stoker::pack {

/// When the SHA-256 is computed.
enum class Hashing {
  immediate,
  deferred,  ///< by the owner of the lane, together with a second file: two take little longer than one
};

class BlockFile final : public archive::ByteSink {
 public:
  /// Creates or truncates the file.
  static Result<BlockFile> create(const Path& path, dataset::BlockHash hash, Hashing when);
  BlockFile(BlockFile&&) noexcept = default;
  ~BlockFile() override;

  Status write(std::span<const std::byte> data) override;
  /// With Hashing::deferred `data` must stay valid until the lane is empty or release_inputs() is called.
  Status write_with_crc(std::span<const std::byte> data, std::uint32_t crc32c) override;
  void release_inputs() override;
  /// Takes effect in finish(). REQUIRES: `head` is in the first block.
  Status overwrite_head(std::span<const std::byte> head) override;
  /// Data to hash. Empty with CRC-32C, and with Hashing::immediate.
  Sha256Lane& lane() { return lane_; }
  /// Writes and hashes the rest, syncs and closes. Nothing may be written afterwards.
  Status finish();

  /// After finish():
  std::uint64_t bytes() const { return bytes_; }
  const std::vector<Digest>& blocks() const { return blocks_; }

 private:
  BlockFile(File file, dataset::BlockHash hash, Hashing when);
  Status flush();
  Status put(std::span<const std::byte> data);
  void hash(std::span<const std::byte> data);
  void release_held();
  void renew_buffer();
  void end_block();
  void end_if_full();
  Status write_head();

  File file_;
  std::vector<std::byte> buffer_;
  std::vector<std::vector<std::byte>> held_;  // written buffers that must still be hashed
  dataset::BlockHash kind_;
  Hashing when_;
  dataset::BlockHasher crc_;  // of the current block
  Sha256Lane lane_;
  std::uint64_t bytes_ = 0;
  std::vector<std::byte> head_;  // replaces the first bytes of the file
  std::vector<Digest> blocks_;
};

}  // namespace stoker::pack
