// The environment of a rank's command, as specified in docs/environment.md. Values; no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "rank/plan.h"
#include "stoker/status.h"

namespace stoker::observe {
struct TrackerOptions;
}

namespace stoker::rank {

/// Variables from `stoker run` to `stoker rank`; the command never sees them.
inline constexpr std::string_view kWorldVariable =
    "STOKER_WORLD";  ///< address and secret of the run (net::join)
inline constexpr std::string_view kPlaceVariable =
    "STOKER_PLACE";  ///< not set under srun, where Slurm provides it
inline constexpr std::string_view kPlaceByTorchrun =
    "torchrun";  ///< value of the above: torchrun provides it
inline constexpr std::string_view kRanksWorldVariable =
    "STOKER_RANKS_WORLD";  ///< for a node's torchrun: the address for its ranks
inline constexpr std::string_view kStartVariable =
    "STOKER_START_LIMIT";  ///< seconds until all ranks must have joined
inline constexpr std::string_view kCpusVariable = "STOKER_CPUS_PER_RANK";
inline constexpr std::string_view kNodesVariable = "STOKER_RANKS_OF_NODE";  ///< "2,2,1"
inline constexpr std::string_view kOwnGpusVariable =
    "STOKER_GPUS_PER_RANK";  ///< the command sees this one, too, if it is not 0
inline constexpr std::string_view kSharedGpuVariable = "STOKER_RANKS_PER_GPU";
inline constexpr std::string_view kPortsVariable = "STOKER_PORTS";  ///< "21000-21999"; not set: any
inline constexpr std::string_view kPortVariable =
    "STOKER_PORT";  ///< below torchrun, which sets its own: the user's MASTER_PORT, or empty
inline constexpr std::string_view kErrorsVariable =
    "STOKER_ERRORS_TO";  ///< below torchrun: the path of the run's standard error
/// The staged folder of each node, in node order, one per line; a rank gets the one of its node as
/// STOKER_STAGE_DIR.
inline constexpr std::string_view kStageVariable = "STOKER_STAGE_DIRS";
/// Path of the job's virtual environment in the staged folder, if it is staged.
inline constexpr std::string_view kStagedVenvVariable = "STOKER_STAGED_VENV";

/// "auto", "none", or "regex:" and an expression, for record.metrics_from.
inline constexpr std::string_view kMetricsVariable = "STOKER_METRICS_FROM";

/// Where the training's ranks rendezvous.
struct Rendezvous {
  std::string address;
  int port = 0;
};

/// `base` (the environment of `stoker rank`) with the variables of this rank: RANK, LOCAL_RANK, WORLD_SIZE,
/// LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT and the variables of set_threads. Excludes the
/// variables for `stoker rank`, and the variables of an outer torchrun.
Environment rank_environment(Environment base, const RankPlacement& place, const Rendezvous& rendezvous,
                             int threads);

/// `base` without the variables for `stoker rank`.
Environment without_stoker_variables(Environment base);
/// `base` without the variables of an outer torchrun.
Environment without_torchrun(Environment base);

/// Folder in a staged folder with a link for each dataset that is on the node: its name in the job file.
inline constexpr std::string_view kDataFolder = ".data";
/// "STOKER_DATA_TRAIN" for the dataset "train" of a job file.
std::string data_variable(std::string_view name);
/// Sets STOKER_DATA_<NAME> of the datasets that are on this node.
void set_staged_data(Environment& environment, const Path& staged);
/// The ranks use the copy `venv` of the virtual environment in VIRTUAL_ENV: its paths in PATH,
/// LD_LIBRARY_PATH and the first word of `command` are replaced by the paths of the copy. No effect without
/// VIRTUAL_ENV.
void use_staged_venv(Environment& environment, std::vector<std::string>& command, const Path& venv);
/// The folder of this node in kStageVariable; "" without staging.
std::string staged_folder(std::string_view folders, int node);

/// Sets OMP_NUM_THREADS, and its equivalents for libraries that ignore it, unless they are set.
void set_threads(Environment& environment, int threads);

/// Variables with which a script's own calls of wandb continue one run over all attempts, a separate one for
/// each rank or task (STOKER_TASK) of an array, and with which runs of MLflow have the tag kMlflowTag.
/// Variables that are set, also to an empty value, are kept.
void set_tracker_variables(Environment& environment, int rank);

/// Where the trackers of a rank's command have their files, from its environment after
/// set_tracker_variables(). `number`: of the rank or task, in the names of the attempt's files.
observe::TrackerOptions tracker_options(const Environment& environment, const Path& attempt, int number,
                                        const Path& working_directory);

/// Inside an allocation: sets SLURM_PROCID and related variables as srun would, for programs that read them
/// instead of RANK. `ranks_of_node` in the format of kNodesVariable.
void set_slurm_variables(Environment& environment, const RankPlacement& place,
                         std::string_view ranks_of_node);

/// Cores per rank: `wanted` if positive, else an even share of this process's cores, limited to the job's
/// `on_node` if known.
int cores_per_rank(int wanted, const RankPlacement& place, std::optional<int> on_node);

}  // namespace stoker::rank
