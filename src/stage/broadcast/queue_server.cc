#include "stage/broadcast/queue_server.h"

namespace stoker::stage {

void QueueServer::add(SwarmLink& link) {
  queue_.returned(link.node());
  links_[link.node()] = &link;
}

void QueueServer::remove(const SwarmLink& link, double now) {
  if (!serves(link)) return;
  links_.erase(link.node());
  queue_.gone(link.node());
  grant(now);
}

bool QueueServer::serves(const SwarmLink& link) const {
  const auto found = links_.find(link.node());
  return found != links_.end() && found->second == &link;
}

Status QueueServer::handle(const SwarmLink& link, const net::SecureFrame& frame) {
  const auto kind = static_cast<SwarmKind>(frame.kind);
  const std::uint32_t node = link.node();
  if (kind == SwarmKind::have || kind == SwarmKind::unwanted) {
    STOKER_ASSIGN_OR_RETURN(ranges, parse_ranges(frame.bytes, pieces_));
    for (const PieceRange& range : ranges) {
      for (std::uint32_t piece = range.first; piece < range.first + range.count; ++piece) {
        if (kind == SwarmKind::have) {
          queue_.has(node, piece);
        } else {
          queue_.refuses(node, piece);
        }
      }
    }
  } else if (kind == SwarmKind::joined) {
    queue_.joined(node);
  } else if (kind == SwarmKind::ask) {
    queue_.ask(node);
  } else {
    STOKER_ASSIGN_OR_RETURN(piece, parse_piece(frame.bytes, pieces_));
    if (kind == SwarmKind::misses) queue_.misses(node, piece);
    if (kind == SwarmKind::failed) queue_.failed(node, piece);
  }
  return {};
}

void QueueServer::grant(double now) {
  for (const ReadingGrant& one : queue_.next(now)) {
    const auto link = links_.find(one.node);
    if (link == links_.end()) {
      queue_.gone(one.node);
    } else {
      link->second->push({.kind = SwarmKind::grant, .piece = one.piece});
    }
  }
}

}  // namespace stoker::stage
