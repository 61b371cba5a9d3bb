// A stream of bytes whose hashes no manifest lists, as pieces of a swarm: each block of a piece ends with its
// SHA-256, which the node computes that reads it. Layout: docs/formats/broadcast.md. Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/thread.h"
#include "stage/broadcast/swarm.h"

namespace stoker::stage {

class HashedStream : public PieceStore {
 public:
  /// `bytes` of the stream.
  explicit HashedStream(std::uint64_t bytes);

  /// For the plan of the swarm.
  const std::vector<ShardPiece>& pieces() const { return pieces_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Of the stream, kept so far.
  std::uint64_t kept_bytes() const;
  /// Of them from peers.
  std::uint64_t received_bytes() const;
  /// An error with which the broadcast cannot be completed; Ok so far.
  Status problem() const;
  /// Ok, or why a piece cannot be had from any node.
  Status lost() const;
  /// Keeps all blocks, which read_source() reads.
  Status keep_all();

  Status fetch(std::uint32_t piece) override;
  Status write(std::uint32_t piece, std::uint64_t offset, std::span<const std::byte> bytes) override;
  void written(std::uint32_t) override {}
  void unreachable(std::uint32_t piece) override;
  Status read(std::uint32_t piece, std::uint64_t offset, std::span<std::byte> out) override;

 protected:
  /// Part of the stream, from the source. Corrupt ends the broadcast, see fail().
  virtual Status read_source(std::uint64_t offset, std::span<std::byte> out) = 0;
  /// Keeps a part. Of a part that is kept twice at the same time, `is_kept` comes once.
  virtual Status keep(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void is_kept(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// A kept part.
  virtual Status read_kept(std::uint64_t offset, std::span<std::byte> out) = 0;

  /// Ends the broadcast with this error: Corrupt, for the swarm.
  Status fail(Status problem);
  /// From now on nothing is written. Waits for writers.
  void seal();

 private:
  struct Block {
    std::uint64_t number = 0;
    std::uint64_t offset = 0;  // in the stream
    std::uint64_t bytes = 0;   // without the hash
  };
  Block block_at(const ShardPiece& piece, std::uint64_t offset) const;
  Status keep_block(const Block& block, std::span<const std::byte> bytes, const Digest& digest,
                    bool is_received);

  const std::uint64_t bytes_;
  const std::vector<ShardPiece> pieces_;
  mutable Mutex mutex_;
  std::vector<Digest> digests_ STOKER_GUARDED_BY(mutex_);
  std::vector<bool> kept_ STOKER_GUARDED_BY(mutex_);
  std::uint64_t kept_bytes_ STOKER_GUARDED_BY(mutex_) = 0;
  std::uint64_t received_ STOKER_GUARDED_BY(mutex_) = 0;
  int writers_ STOKER_GUARDED_BY(mutex_) = 0;
  bool is_sealed_ STOKER_GUARDED_BY(mutex_) = false;
  Condition idle_;
  Status problem_ STOKER_GUARDED_BY(mutex_);
  Status last_failure_ STOKER_GUARDED_BY(mutex_);
  Status lost_ STOKER_GUARDED_BY(mutex_);
};

}  // namespace stoker::stage
