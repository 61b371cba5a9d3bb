// What a rank's command finds in its environment: the contract of docs/environment.md. Values; no state.
#pragma once

#include <string>
#include <string_view>

#include "base/process.h"
#include "rank/plan.h"

namespace stoker::rank {

/// Variables by which `stoker run` speaks to `stoker rank`; the command never sees them.
inline constexpr std::string_view kWorldVariable = "STOKER_WORLD";  ///< the invitation to the run (net::join)
inline constexpr std::string_view kPlaceVariable = "STOKER_PLACE";  ///< not set under srun: Slurm says it
inline constexpr std::string_view kStartVariable =
    "STOKER_START_LIMIT";  ///< seconds until all ranks must be there
inline constexpr std::string_view kCpusVariable = "STOKER_CPUS_PER_RANK";

/// Sets or replaces one variable.
void set_variable(Environment& environment, std::string_view name, std::string value);
void unset_variable(Environment& environment, std::string_view name);
/// The value, or "" when it is not set.
std::string variable(const Environment& environment, std::string_view name);

/// Where the training's own ranks meet.
struct Rendezvous {
  std::string address;
  int port = 0;
};

/// `base` (what `stoker rank` itself was given) with the variables of this rank: RANK, LOCAL_RANK,
/// WORLD_SIZE, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT; OMP_NUM_THREADS = `threads` unless it
/// is set; without those meant for `stoker rank`, and without what an outer torchrun left behind.
Environment rank_environment(Environment base, const Place& place, const Rendezvous& rendezvous, int threads);

/// Cores for one rank: `wanted` if that is more than 0, else the cores this process may use shared out
/// evenly.
int cores_per_rank(int wanted, const Place& place);

}  // namespace stoker::rank
