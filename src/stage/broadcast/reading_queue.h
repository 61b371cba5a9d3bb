// Decides which node reads which piece from the shared filesystem, so that each is read once. One per dataset
// of a job, on its first node. Its time is in seconds of any clock. Thread-compatible.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "stage/broadcast/piece_set.h"
#include "stage/broadcast/usual_time.h"

namespace stoker::stage {

/// A node may read the piece.
struct ReadingGrant {
  std::uint32_t node = 0;
  std::uint32_t piece = 0;

  bool operator==(const ReadingGrant&) const = default;
};

class ReadingQueue {
 public:
  /// `late_s`: of a reading, at least; then a different node reads the piece, too.
  ReadingQueue(std::uint32_t nodes, std::uint32_t pieces, double late_s = 5);

  /// The pieces that the node has are known: readings begin when this holds for all nodes that have not gone,
  /// or at start().
  void joined(std::uint32_t node);
  void start() { is_started_ = true; }
  /// The node has it, from the source or from its cache.
  void has(std::uint32_t node, std::uint32_t piece);
  /// The node has no room for it, so it is never granted to that node.
  void refuses(std::uint32_t node, std::uint32_t piece);
  /// The node can read one more piece.
  void ask(std::uint32_t node);
  /// For a long time, the node knows no other one with the piece: it reads the piece itself, unless it is
  /// being read.
  void misses(std::uint32_t node, std::uint32_t piece);
  /// The node could not read the piece it was granted.
  void failed(std::uint32_t node, std::uint32_t piece);
  /// The node has ended or is unreachable; what it was reading is granted to a different one.
  void gone(std::uint32_t node);
  /// It is reachable again.
  void returned(std::uint32_t node) { nodes_[node].is_gone = false; }

  /// Grants that are due. A piece whose reader is far slower than usual is granted to a waiting node too.
  std::vector<ReadingGrant> next(double now);

  /// Pieces granted more than once.
  std::uint64_t repeated() const { return repeated_; }

 private:
  struct Reading {
    std::uint32_t node = 0;
    std::uint32_t piece = 0;
    double begin = 0;
    bool is_repeated = false;
  };
  struct Node {
    std::uint32_t asks = 0;
    bool is_gone = false;
    bool has_joined = false;
    std::optional<PieceSet> refused;
  };

  std::optional<std::uint32_t> first_for(const Node& node) const;
  std::optional<std::uint32_t> late_for(std::uint32_t node, double now);
  void release(std::uint32_t piece);
  bool is_being_read(std::uint32_t piece) const;

  const std::uint32_t pieces_;
  const double late_s_;
  std::vector<Node> nodes_;
  std::uint32_t waiting_ = 0;  // nodes that have not joined
  bool is_started_ = false;
  PieceSet unread_;
  std::uint32_t first_unread_ = 0;  // none before it
  std::vector<Reading> readings_;
  std::vector<ReadingGrant> missed_;
  std::deque<std::uint32_t> turn_;  // nodes in the order of their asks
  double now_ = 0;
  double next_late_search_ = 0;
  UsualTime usual_;  // of a reading
  std::uint64_t repeated_ = 0;
};

}  // namespace stoker::stage
