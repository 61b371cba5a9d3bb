// One node's part in a broadcast of a dataset: it reads some pieces from the source, requests the remaining
// ones from its neighbours, and serves all of them as long as it exists. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/secure_channel.h"
#include "stage/broadcast/piece.h"
#include "stage/broadcast/piece_schedule.h"
#include "stage/broadcast/swarm_message.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::stage {

/// Where a node keeps the pieces. Called from several threads at once; one piece may be written twice at the
/// same time, with equal bytes.
class PieceStore {
 public:
  virtual ~PieceStore() = default;
  /// Reads a piece from the source and keeps it. Corrupt if the source is damaged, which ends the broadcast;
  /// Cancelled; any other error means that this node cannot read it.
  virtual Status fetch(std::uint32_t piece) = 0;
  /// Keeps bytes of a peer, which are whole blocks, after they were compared with the manifest: Corrupt if
  /// they differ. Any other error means that this node cannot store the piece, which the store has given up
  /// then.
  virtual Status write(std::uint32_t piece, std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// All bytes of the piece were written.
  virtual void written(std::uint32_t piece) = 0;
  /// This node could not fetch it, and no node has had it for a long time: the store gives it up.
  virtual void unreachable(std::uint32_t piece) = 0;
  /// Bytes of a kept piece, for a peer.
  virtual Status read(std::uint32_t piece, std::uint64_t offset, std::span<std::byte> out) = 0;
};

/// The nodes of a broadcast. All nodes have the same, except `node`.
struct SwarmPlan {
  std::uint32_t node = 0;
  std::vector<std::vector<std::string>>
      addresses;        ///< of each node, for Channel::connect_any; empty: unreachable
  std::string secret;   ///< of the job
  std::string dataset;  ///< identifies it; at most 64 bytes
  std::vector<ShardPiece> pieces;
  ByteCount rate;  ///< bytes per second of this node's link, in each direction; 0: no limit
  SwarmLimits limits;
};

/// Bytes so far.
struct SwarmTraffic {
  std::uint64_t read_bytes = 0;      ///< at the source
  std::uint64_t received_bytes = 0;  ///< from peers, kept
  std::uint64_t sent_bytes = 0;      ///< to peers
};

class Swarm {
 public:
  /// Starts to connect. `store` must outlive it.
  Swarm(SwarmPlan plan, PieceStore& store);
  Swarm(const Swarm&) = delete;
  Swarm& operator=(const Swarm&) = delete;
  ~Swarm();

  /// The identity of the dataset and its pieces, which peers compare.
  const std::string& plan_text() const;
  /// Takes a connection whose hello has the same plan.
  void adopt(net::SecureChannel channel, const SwarmHello& hello);

  /// This node can store the pieces.
  void wants(PieceRange pieces);
  /// This node has them.
  void has(PieceRange pieces);
  /// It cannot store them, or cannot any more.
  void gives_up(PieceRange pieces);
  /// All pieces were named with wants(), has() and gives_up(), or will be later. Readings begin when all
  /// nodes called it, or after `limits.join_s`.
  void joined();

  /// Pieces that this node is to read, and that were not named yet.
  std::vector<std::uint32_t> early_grants() const;
  /// Wanted pieces that are not stored yet.
  std::uint32_t left() const;
  /// Waits until a piece was stored, given up or granted early, or for the deadline. The error that ended the
  /// broadcast, if any.
  Status wait(Deadline deadline);
  SwarmTraffic traffic() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker::stage
