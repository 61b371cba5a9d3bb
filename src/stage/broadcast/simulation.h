// A discrete-event simulation of a broadcast: the scheduling of real nodes over a modelled source, links and
// disks. Forecasts the time on clusters that are not at hand. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <vector>

#include "stage/broadcast/piece_schedule.h"
#include "stoker/bytes.h"

namespace stoker::stage {

/// Which nodes exchange pieces.
enum class SwarmShape {
  swarm,  ///< swarm_neighbours(); all nodes read
  chain,  ///< node 0 reads, each node serves the next one
  tree,   ///< node 0 reads, each node serves two
};

/// A cluster. Rates in bytes per second.
struct SimulatedCluster {
  std::uint32_t nodes = 1;
  ByteCount bytes;               ///< of the dataset
  std::uint32_t pieces = 1'000;  ///< of equal size
  double source_rate = 0;        ///< of the shared filesystem, for all nodes together
  double link_rate = 0;          ///< of a node's link, in each direction
  double read_rate = 0;          ///< of one node at the source; 0: as the source
  std::vector<double> slow;      ///< the link rates of nodes 0, 1, ... that differ; 0: `link_rate`
  SwarmShape shape = SwarmShape::swarm;
  SwarmLimits limits;
};

/// What happened.
struct SimulatedBroadcast {
  std::vector<double> done_s;     ///< when each node had all pieces
  double first_piece_s = 0;       ///< when the last node had the first piece
  std::uint64_t pieces_read = 0;  ///< at the source
};

/// REQUIRES: at least one node and piece, positive rates.
SimulatedBroadcast simulate_broadcast(const SimulatedCluster& cluster);

/// A lower bound of the time until all nodes have the dataset, whatever is sent where: the source is read
/// once, and each link must carry what its node did not read.
double broadcast_bound_s(const SimulatedCluster& cluster);

}  // namespace stoker::stage
