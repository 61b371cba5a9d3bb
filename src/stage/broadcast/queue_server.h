// Answers the nodes that ask for pieces to read: the reading queue with their connections. On the first node
// of a broadcast. Used by swarm.cc. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "stage/broadcast/reading_queue.h"
#include "stage/broadcast/swarm_link.h"
#include "stage/broadcast/swarm_message.h"
#include "stoker/status.h"

namespace stoker::stage {

class QueueServer {
 public:
  /// `late_s`: as of ReadingQueue.
  QueueServer(std::uint32_t nodes, std::uint32_t pieces, double late_s)
      : pieces_(pieces), queue_(nodes, pieces, late_s) {}

  /// The node is reachable by this link, which replaces an earlier one. Remove it before it is destroyed.
  void add(SwarmLink& link);
  /// The node has ended or is unreachable. No effect for a link that was replaced.
  void remove(const SwarmLink& link, double now);
  /// Whether the link was added, and neither replaced nor removed.
  bool serves(const SwarmLink& link) const;

  /// Applies a message of a link that it serves. Corrupt for one that cannot be parsed.
  Status handle(const SwarmLink& link, const net::SecureFrame& frame);
  /// Readings begin, although nodes may not have joined.
  void start() { queue_.start(); }
  /// Sends the grants that are due.
  void grant(double now);

 private:
  const std::uint32_t pieces_;
  ReadingQueue queue_;
  std::map<std::uint32_t, SwarmLink*> links_;  // by node
};

}  // namespace stoker::stage
