// What a rank's command finds in its environment: the contract of docs/environment.md. Values; no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/process.h"
#include "base/status.h"
#include "rank/plan.h"

namespace stoker::rank {

/// Variables by which `stoker run` speaks to `stoker rank`; the command never sees them.
inline constexpr std::string_view kWorldVariable = "STOKER_WORLD";  ///< the invitation to the run (net::join)
inline constexpr std::string_view kPlaceVariable = "STOKER_PLACE";  ///< not set under srun: Slurm says it
inline constexpr std::string_view kPlaceByTorchrun = "torchrun";    ///< as place: torchrun's variables say it
inline constexpr std::string_view kRanksWorldVariable =
    "STOKER_RANKS_WORLD";  ///< of a node's torchrun: the invitation for its ranks
inline constexpr std::string_view kStartVariable =
    "STOKER_START_LIMIT";  ///< seconds until all ranks must be there
inline constexpr std::string_view kCpusVariable = "STOKER_CPUS_PER_RANK";
inline constexpr std::string_view kNodesVariable = "STOKER_RANKS_OF_NODE";  ///< "2,2,1"
inline constexpr std::string_view kSharedGpuVariable = "STOKER_RANKS_PER_GPU";
inline constexpr std::string_view kPortsVariable = "STOKER_PORTS";  ///< "21000-21999", or not set: any
inline constexpr std::string_view kPortVariable =
    "STOKER_PORT";  ///< below torchrun, which sets its own: the MASTER_PORT that the user wants, or empty
inline constexpr std::string_view kErrorsVariable =
    "STOKER_ERRORS_TO";  ///< below torchrun: the file that is standard error
/// The staged folder of each node, in node order, a line each; a rank gets its own as STOKER_STAGE_DIR.
inline constexpr std::string_view kStageVariable = "STOKER_STAGE_DIRS";

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
/// WORLD_SIZE, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT and the counts of set_threads; without
/// those meant for `stoker rank`, and without what an outer torchrun left behind.
Environment rank_environment(Environment base, const Place& place, const Rendezvous& rendezvous, int threads);

/// `base` without the variables meant for `stoker rank`.
Environment without_ours(Environment base);
/// `base` without what an outer torchrun left behind.
Environment without_torchrun(Environment base);

/// The one of kStageVariable's folders that is on this node; "" when nothing is staged.
std::string staged_folder(std::string_view folders, int node);

/// OMP_NUM_THREADS, and the same of libraries that do not look at it, where they are not set yet.
void set_threads(Environment& environment, int threads);

/// Inside an allocation: SLURM_PROCID and its like as if srun had started this rank, for programs that look
/// at them in place of RANK. `ranks_of_node` as kNodesVariable has it.
void speak_slurm(Environment& environment, const Place& place, std::string_view ranks_of_node);

/// Cores for one rank: `wanted` if that is more than 0, else the cores this process may use shared out
/// evenly, of the job's `on_node` where that is known.
int cores_per_rank(int wanted, const Place& place, std::optional<int> on_node);

/// The one GPU of a rank that shares it, out of `visible` ("0,1", or empty: not known): LOCAL_RANK modulo
/// the GPUs that the node's ranks need. Invalid when there are not so many.
Result<std::string> shared_gpu(std::string_view visible, const Place& place, int ranks_per_gpu);

}  // namespace stoker::rank
