// What one node does next in a swarm: which piece it requests from which neighbour, and when it asks to read
// one from the source. The same code runs on nodes and in the simulation. Its time is in seconds of any
// clock. Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "stage/broadcast/piece_set.h"
#include "stage/broadcast/usual_time.h"

namespace stoker::stage {

/// Limits of a node in a swarm.
struct SwarmLimits {
  std::uint32_t requests_per_neighbour = 2;  ///< that are not answered yet
  std::uint32_t requests = 32;               ///< of all neighbours
  std::uint32_t readings = 4;                ///< at the source at once
  std::uint32_t backlog = 8;                 ///< pieces that others wait for; with more, a node reads none
  double late_request_s = 2;                 ///< at least; then a request is repeated at a different node
  double late_reading_s = 5;                 ///< at least; then a different node reads the piece, too
  double missed_s = 5;                       ///< at least; then a piece that no node has is read again
  double alone_s = 20;                       ///< without any progress; then a node reads on its own
  double join_s = 10;                        ///< then readings begin, although some nodes have not joined
  std::uint32_t urgent = 0;                  ///< first pieces, which are requested before all others
  std::uint32_t allocated = 128;             ///< missing pieces with space on the disk, while ranks wait
};

/// A request of a piece.
struct PieceRequest {
  std::uint32_t node = 0;
  std::uint32_t piece = 0;

  bool operator==(const PieceRequest&) const = default;
};

class PieceSchedule {
 public:
  /// REQUIRES: `neighbours` are different and do not contain `node`.
  PieceSchedule(std::uint32_t node, const std::vector<std::uint32_t>& neighbours, std::uint32_t pieces,
                SwarmLimits limits = {});

  /// This node can store the piece and does not have it.
  void wants(std::uint32_t piece);
  /// It cannot store the piece any more.
  void gives_up(std::uint32_t piece);
  /// This node has it now.
  void stored(std::uint32_t piece, double now);
  bool has(std::uint32_t piece) const { return stored_.contains(piece); }

  /// The neighbour has the piece. No effect for one that is not a neighbour.
  void neighbour_has(std::uint32_t neighbour, std::uint32_t piece);
  /// The neighbour cannot send this piece, or sent damaged bytes: it is not requested there again.
  void refused(std::uint32_t neighbour, std::uint32_t piece);
  /// The connection is gone, with all requests and all knowledge.
  void neighbour_gone(std::uint32_t neighbour);

  /// The next request, which then counts as sent; nullopt if there is nothing to request now. A request that
  /// is far later than usual is repeated at a different neighbour.
  std::optional<PieceRequest> next_request(double now);

  /// Whether to ask for a piece to read, which then counts as asked for. `backlog`: pieces requested here
  /// that were not sent.
  bool asks_to_read(std::uint32_t backlog);
  /// It was granted: false if this node has it, or does not want it.
  bool granted(std::uint32_t piece);
  /// What was asked for and not granted is not granted any more.
  void forget_asks() { asked_ = reading_; }
  /// The first piece that can be read and that no neighbour has, and that is not one of `except`.
  std::optional<std::uint32_t> first_without_holder(const std::set<std::uint32_t>& except = {}) const;
  /// A granted reading ended.
  void reading_ended(std::uint32_t piece, bool is_ok, double now);

  /// The first piece that no neighbour has, if that has not changed for a long time.
  std::optional<std::uint32_t> missed(double now);

  /// Wanted pieces that are not stored.
  std::uint32_t left() const { return left_; }

 private:
  struct Neighbour {
    std::uint32_t node = 0;
    PieceSet has;
    std::map<std::uint32_t, double> requests;  // pieces, and when
  };

  std::optional<std::uint32_t> choose(const Neighbour& neighbour);
  std::optional<std::uint32_t> choose_late(const Neighbour& neighbour, double now) const;
  Neighbour* find(std::uint32_t node);
  void reopen(std::uint32_t piece);

  const std::uint32_t node_;
  const std::uint32_t pieces_;
  const SwarmLimits limits_;
  std::vector<Neighbour> neighbours_;
  std::size_t turn_ = 0;  // of the neighbours
  PieceSet stored_;
  PieceSet open_;            // wanted, and neither stored, requested nor being read
  PieceSet wanted_;          // and not stored
  std::uint32_t first_ = 0;  // no wanted piece before it
  std::vector<std::uint8_t> holders_;
  std::uint32_t requests_ = 0;
  std::uint32_t chosen_ = 0;
  double next_late_search_ = 0;
  std::uint32_t asked_ = 0;  // and being read
  std::uint32_t reading_ = 0;
  std::uint32_t left_ = 0;
  UsualTime usual_;  // of a request
  std::uint32_t missed_ = PieceSet::kNone;
  double missed_since_ = 0;
};

}  // namespace stoker::stage
