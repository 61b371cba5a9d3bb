#include "stage/broadcast/simulation.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

namespace stoker::stage {
namespace {

constexpr double kMega = 1e6;

double slowest_of(const SimulatedBroadcast& result) { return *std::ranges::max_element(result.done_s); }

SimulatedCluster cluster_of(std::uint32_t nodes, double source, double link) {
  return {.nodes = nodes,
          .bytes = {2'000'000'000},
          .pieces = 500,
          .source_rate = source * kMega,
          .link_rate = link * kMega};
}

TEST(Simulation, one_node_reads_at_the_rate_of_the_source) {
  const SimulatedBroadcast result = simulate_broadcast(cluster_of(1, 100, 300));
  EXPECT_NEAR(result.done_s[0], 20, 0.001);
  EXPECT_EQ(result.pieces_read, 500u);
}

TEST(Simulation, a_chain_takes_the_slower_rate_and_a_piece_for_each_step) {
  for (const auto& [source, link] : {std::pair(100.0, 300.0), std::pair(300.0, 100.0)}) {
    for (const std::uint32_t nodes : {2u, 16u, 64u}) {
      SimulatedCluster cluster = cluster_of(nodes, source, link);
      cluster.shape = SwarmShape::chain;
      const double bytes = 2000, piece = bytes / cluster.pieces;
      const double wanted =
          bytes / std::min(source, link) + piece / std::max(source, link) + (nodes - 2) * piece / link;
      const SimulatedBroadcast result = simulate_broadcast(cluster);
      EXPECT_NEAR(result.done_s.back() / wanted, 1, 0.02) << nodes << " " << source;
      EXPECT_EQ(result.pieces_read, cluster.pieces);
    }
  }
}

TEST(Simulation, a_binary_tree_sends_each_piece_twice) {
  for (const std::uint32_t nodes : {3u, 15u, 63u, 1023u}) {
    SimulatedCluster cluster = cluster_of(nodes, 1000, 100);
    cluster.shape = SwarmShape::tree;
    double depth = 0;
    for (std::uint32_t n = nodes; n > 1; n /= 2) depth += 1;
    const double bytes = 2000, piece = bytes / cluster.pieces;
    const double wanted = 2 * bytes / 100 + (depth - 1) * 2 * piece / 100;
    EXPECT_NEAR(slowest_of(simulate_broadcast(cluster)) / wanted, 1, 0.02) << nodes;
  }
}

TEST(Simulation, a_swarm_reads_each_piece_once_and_comes_near_the_bound) {
  for (const std::uint32_t nodes : {2u, 4u, 16u, 64u}) {
    for (const auto& [source, link] :
         {std::pair(150.0, 300.0), std::pair(2000.0, 300.0), std::pair(300.0, 300.0)}) {
      const SimulatedCluster cluster = cluster_of(nodes, source, link);
      const SimulatedBroadcast result = simulate_broadcast(cluster);
      EXPECT_EQ(result.pieces_read, cluster.pieces);
      EXPECT_LE(slowest_of(result), 1.3 * broadcast_bound_s(cluster)) << nodes << " " << source;
      EXPECT_LE(result.first_piece_s, 0.1 * slowest_of(result)) << nodes << " " << source;
    }
  }
}

TEST(Simulation, a_slow_node_does_not_stop_others) {
  SimulatedCluster cluster = cluster_of(16, 150, 300);
  const double usual = slowest_of(simulate_broadcast(cluster));
  cluster.slow = {0, 0, 0, 15 * kMega};
  SimulatedBroadcast result = simulate_broadcast(cluster);
  const double slow = std::exchange(result.done_s[3], 0);
  EXPECT_LE(slowest_of(result), 1.1 * usual);
  // It receives what it did not read.
  const double least = 2000.0 * 15 / 16 / 15;
  EXPECT_GE(slow, 0.9 * least);
  EXPECT_LE(slow, 1.02 * 2000.0 / 15);
}

}  // namespace
}  // namespace stoker::stage
