// A file that is written once, front to back, and knows the hashes of its blocks afterwards. Small pieces are
// gathered; all is hashed and written while it is in the core's own cache. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/sha256/lane.h"
#include "base/status.h"
#include "format/manifest.h"
#include "format/tar.h"

namespace stoker::data {

/// When the SHA-256 of what was written is computed.
enum class Hashing {
  now,
  later,  ///< by whoever runs the lane, beside that of another file: two take little longer than one
};

class BlockFile final : public formats::ByteSink {
 public:
  /// Creates or truncates the file.
  static Result<BlockFile> create(const Path& path, formats::BlockHash hash, Hashing when);
  BlockFile(BlockFile&&) noexcept = default;
  ~BlockFile() override;

  Status write(std::span<const std::byte> data) override;
  /// With Hashing::later `data` must stay until the lane is empty, or settle().
  Status write_with_crc(std::span<const std::byte> data, std::uint32_t crc32c) override;
  void settle() override;
  /// Takes effect in finish(). REQUIRES: `head` lies in the first block.
  Status put_head(std::span<const std::byte> head) override;
  /// What is to be hashed. Empty with CRC-32C, and with Hashing::now.
  Sha256Lane& lane() { return lane_; }
  /// Writes and hashes the rest, syncs and closes. Nothing may be written after it.
  Status finish();

  /// After finish():
  std::uint64_t bytes() const { return bytes_; }
  const std::vector<Digest>& blocks() const { return blocks_; }

 private:
  BlockFile(File file, formats::BlockHash hash, Hashing when);
  Status flush();
  Status put(std::span<const std::byte> data);
  void hash(std::span<const std::byte> data);
  void give_held();
  void renew_buffer();
  void end_block();
  void end_if_full();
  Status write_head();

  File file_;
  std::vector<std::byte> buffer_;
  std::vector<std::vector<std::byte>> held_;  // former buffers that are still to be hashed
  formats::BlockHash kind_;
  Hashing when_;
  formats::BlockHasher crc_;  // of the block at hand
  Sha256Lane lane_;
  std::uint64_t bytes_ = 0;
  std::vector<std::byte> head_;  // that replaces what is there
  std::vector<Digest> blocks_;
};

}  // namespace stoker::data
