// The time of a broadcast of 200 TB by the scheduling code of the nodes, in its simulation, and the bound;
// and of 2 GB on the few nodes of a lab.
#include <algorithm>

#include <benchmark/benchmark.h>

#include "stage/broadcast/simulation.h"

namespace stoker::stage {
namespace {

// Nodes, and the rate of the source in GB/s.
void broadcast_200_tb(benchmark::State& state) {
  const SimulatedCluster cluster{.nodes = static_cast<std::uint32_t>(state.range(0)),
                                 .bytes = {200'000'000'000'000},
                                 .pieces = 2000,
                                 .source_rate = static_cast<double>(state.range(1)) * 1e9,
                                 .link_rate = 25e9};
  for (auto _ : state) {
    const SimulatedBroadcast result = simulate_broadcast(cluster);
    const double done = *std::ranges::max_element(result.done_s);
    state.counters["hours"] = done / 3600;
    state.counters["of_bound"] = done / broadcast_bound_s(cluster);
    state.counters["first_piece"] = result.first_piece_s / done;
    state.counters["read"] = static_cast<double>(result.pieces_read) / cluster.pieces;
  }
}
BENCHMARK(broadcast_200_tb)
    ->ArgsProduct({{16, 64, 256, 1024}, {100, 1000}})
    ->Iterations(1)
    ->Unit(benchmark::kSecond);

// Nodes, with the rates of bench/broadcast_on_nodes.py.
void broadcast_2_gb(benchmark::State& state) {
  const SimulatedCluster cluster{.nodes = static_cast<std::uint32_t>(state.range(0)),
                                 .bytes = {2'000'000'000},
                                 .pieces = 2'000'000'000 / (4u << 20),
                                 .source_rate = 150e6,
                                 .link_rate = 300e6};
  for (auto _ : state) {
    const SimulatedBroadcast result = simulate_broadcast(cluster);
    state.counters["seconds"] = *std::ranges::max_element(result.done_s);
  }
}
BENCHMARK(broadcast_2_gb)->DenseRange(2, 4)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace stoker::stage
