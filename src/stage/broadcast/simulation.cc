#include "stage/broadcast/simulation.h"

#include <algorithm>
#include <deque>
#include <queue>

#include "stage/broadcast/piece.h"
#include "stage/broadcast/reading_queue.h"

namespace stoker::stage {
namespace {

std::vector<std::uint32_t> neighbours_of(const SimulatedCluster& cluster, std::uint32_t node) {
  if (cluster.shape == SwarmShape::swarm) return swarm_neighbours(node, cluster.nodes);
  const std::uint32_t children = cluster.shape == SwarmShape::chain ? 1 : 2;
  std::vector<std::uint32_t> found;
  if (node > 0) found.push_back((node - 1) / children);
  for (std::uint32_t child = children * node + 1; child <= children * node + children; ++child) {
    if (child < cluster.nodes) found.push_back(child);
  }
  return found;
}

class Simulation {
 public:
  explicit Simulation(const SimulatedCluster& cluster)
      : cluster_(cluster),
        piece_bytes_(static_cast<double>(cluster.bytes.value) / cluster.pieces),
        queue_(cluster.nodes, cluster.pieces) {
    result_.done_s.resize(cluster.nodes);
    for (std::uint32_t node = 0; node < cluster.nodes; ++node) {
      nodes_.push_back(
          {.schedule = PieceSchedule(node, neighbours_of(cluster, node), cluster.pieces, cluster.limits),
           .neighbours = neighbours_of(cluster, node),
           .rate = node < cluster.slow.size() && cluster.slow[node] > 0 ? cluster.slow[node]
                                                                        : cluster.link_rate});
      for (std::uint32_t piece = 0; piece < cluster.pieces; ++piece) nodes_[node].schedule.wants(piece);
      queue_.joined(node);
    }
  }

  SimulatedBroadcast run() {
    for (std::uint32_t node = 0; node < cluster_.nodes; ++node) act(node);
    grant();
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.time;
      handle(event);
    }
    return result_;
  }

 private:
  enum class Kind { read, sent, received };
  struct Event {
    double time = 0;
    std::uint64_t number = 0;  // events of one time happen in the order of their creation
    Kind kind = Kind::read;
    std::uint32_t node = 0;
    std::uint32_t piece = 0;
    std::uint32_t to = 0;
    bool operator<(const Event& other) const {
      return std::pair(time, number) > std::pair(other.time, other.number);
    }
  };
  struct Node {
    PieceSchedule schedule;
    std::vector<std::uint32_t> neighbours;
    double rate = 0;
    double read_free = 0;
    double down_free = 0;
    bool is_sending = false;
    std::deque<PieceRequest> uploads = {};  // requested, and by whom
  };

  void add(double time, Kind kind, std::uint32_t node, std::uint32_t piece, std::uint32_t to = 0) {
    events_.push({time, ++created_, kind, node, piece, to});
  }

  void handle(const Event& event) {
    Node& node = nodes_[event.node];
    switch (event.kind) {
      case Kind::read:
        queue_.has(event.node, event.piece);
        node.schedule.reading_ended(event.piece, true, now_);
        announce(event.node, event.piece);
        break;
      case Kind::sent: {
        node.is_sending = false;
        Node& receiver = nodes_[event.to];
        // A receiver whose link is busy with other senders gets it later.
        receiver.down_free = std::max(now_, receiver.down_free + piece_bytes_ / receiver.rate);
        add(receiver.down_free, Kind::received, event.to, event.piece);
        send(event.node);
        break;
      }
      case Kind::received:
        if (!node.schedule.has(event.piece)) {
          node.schedule.stored(event.piece, now_);
          announce(event.node, event.piece);
        }
        break;
    }
    act(event.node);
    grant();
  }

  void announce(std::uint32_t from, std::uint32_t piece) {
    if (piece == 0) result_.first_piece_s = std::max(result_.first_piece_s, now_);
    if (nodes_[from].schedule.left() == 0) result_.done_s[from] = now_;
    for (const std::uint32_t other : nodes_[from].neighbours) {
      nodes_[other].schedule.neighbour_has(from, piece);
      act(other);
    }
  }

  void act(std::uint32_t number) {
    Node& node = nodes_[number];
    while (const auto request = node.schedule.next_request(now_)) {
      nodes_[request->node].uploads.push_back({number, request->piece});
      send(request->node);
    }
    const bool may_read = cluster_.shape == SwarmShape::swarm || number == 0;
    while (may_read && node.schedule.asks_to_read(static_cast<std::uint32_t>(node.uploads.size())))
      queue_.ask(number);
  }

  void send(std::uint32_t number) {
    Node& node = nodes_[number];
    if (node.is_sending || node.uploads.empty()) return;
    const PieceRequest upload = node.uploads.front();
    node.uploads.pop_front();
    node.is_sending = true;
    // The slower of both ends decides.
    add(now_ + piece_bytes_ / node.rate, Kind::sent, number, upload.piece, upload.node);
  }

  void grant() {
    for (const ReadingGrant& one : queue_.next(now_)) {
      Node& node = nodes_[one.node];
      if (!node.schedule.granted(one.piece)) continue;
      result_.pieces_read += 1;
      source_free_ = std::max(now_, source_free_) + piece_bytes_ / cluster_.source_rate;
      node.read_free =
          cluster_.read_rate > 0 ? std::max(now_, node.read_free) + piece_bytes_ / cluster_.read_rate : 0;
      add(std::max(source_free_, node.read_free), Kind::read, one.node, one.piece);
    }
  }

  const SimulatedCluster& cluster_;
  const double piece_bytes_;
  ReadingQueue queue_;
  std::vector<Node> nodes_;
  std::priority_queue<Event> events_;
  std::uint64_t created_ = 0;
  double now_ = 0;
  double source_free_ = 0;
  SimulatedBroadcast result_;
};

}  // namespace

SimulatedBroadcast simulate_broadcast(const SimulatedCluster& cluster) { return Simulation(cluster).run(); }

double broadcast_bound_s(const SimulatedCluster& cluster) {
  const double bytes = static_cast<double>(cluster.bytes.value);
  double slowest = cluster.link_rate;
  for (const double rate : cluster.slow) slowest = rate > 0 ? std::min(slowest, rate) : slowest;
  return std::max(bytes / cluster.source_rate, bytes * (1 - 1.0 / cluster.nodes) / slowest);
}

}  // namespace stoker::stage
