// A connection of two nodes in a swarm: the messages that wait to be sent, and the data that was requested.
// Used by swarm.cc. Thread-safe, but one thread sends and one receives. Callers may hold the lock of their
// swarm, which is always taken first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread.h"
#include "net/secure_channel.h"
#include "stage/broadcast/swarm_message.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::stage {

/// Bytes of a piece in one data frame; the last one may be shorter.
inline constexpr std::uint64_t kDataBytes = 4u << 20;

/// A message to send. With `data` it is a whole piece, in several frames.
struct SwarmMessage {
  SwarmKind kind = SwarmKind::hello;
  std::vector<PieceRange> ranges = {};  ///< have, unwanted
  std::uint32_t piece = 0;              ///< all other kinds that name pieces
};

/// Connects to a node and greets it. Corrupt without its welcome.
Result<net::SecureChannel> connect_to_node(std::uint32_t node, const std::vector<std::string>& addresses,
                                           const std::string& secret, const SwarmHello& hello);

class SwarmLink {
 public:
  /// `node`: the peer.
  SwarmLink(net::SecureChannel channel, std::uint32_t node, SwarmRole role)
      : node_(node), role_(role), channel_(std::move(channel)) {}

  std::uint32_t node() const { return node_; }
  SwarmRole role() const { return role_; }

  /// Queues the message. No effect on a closed link.
  void push(SwarmMessage message);
  /// Queues a request of the piece, whose data is then expected.
  void request(std::uint32_t piece);
  /// The peer does not send the piece.
  void refused(std::uint32_t piece);
  /// Ends both directions and discards queued messages. The number of pieces among them.
  std::uint32_t close();
  bool is_closed() const;

  /// The next message, by the thread that sends. Waits for one; nullopt for a closed link. A link that is
  /// idle frees its memory.
  std::optional<SwarmMessage> next();
  /// Sends a message, except data.
  Status send(const SwarmMessage& message);
  /// Sends a data frame.
  Status send_data(const PieceData& header, std::span<const std::byte> bytes);
  /// Memory of the thread that sends, for `bytes` of a data frame. Valid until next().
  std::span<std::byte> block(std::uint64_t bytes);

  /// The next frame, by the thread that receives; as SecureChannel::receive().
  Result<net::SecureFrame> receive(Deadline deadline) { return channel_.receive(deadline); }
  /// Counts `bytes` of a data frame as received. Corrupt unless they are the next ones of a requested piece
  /// with `piece_bytes` in total.
  Status accept_data(const PieceData& header, std::uint64_t bytes, std::uint64_t piece_bytes);

 private:
  void append(SwarmMessage message) STOKER_REQUIRES_LOCK(mutex_);

  const std::uint32_t node_;
  const SwarmRole role_;
  net::SecureChannel channel_;
  std::vector<std::byte> block_;  // of the thread that sends

  mutable Mutex mutex_;
  Condition ready_;
  std::deque<SwarmMessage> outbox_ STOKER_GUARDED_BY(mutex_);
  bool is_closed_ STOKER_GUARDED_BY(mutex_) = false;
  // Requested pieces, and the offset of their next data.
  std::map<std::uint32_t, std::uint64_t> expected_ STOKER_GUARDED_BY(mutex_);
};

}  // namespace stoker::stage
