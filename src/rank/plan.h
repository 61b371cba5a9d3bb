// The ranks of a job and their nodes: on this machine, or as tasks inside a Slurm allocation. Also the
// placement of each rank. Values; functions without state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/job.h"
#include "net/port.h"
#include "slurm/allocation.h"
#include "stoker/status.h"
#include "stoker/strong.h"

namespace stoker::rank {

/// How the ranks are started.
enum class StartMethod { local, srun };

/// The placement of one rank.
struct RankPlacement {
  Rank rank;
  WorldSize world_size{1};
  int local_rank = 0;
  int local_world_size = 1;
  int node = 0;

  friend bool operator==(const RankPlacement&, const RankPlacement&) = default;
};

/// The ranks of one attempt.
struct Plan {
  StartMethod start = StartMethod::local;
  bool has_torchrun = false;  ///< torchrun starts the ranks of each node, instead of `start`
  int nodes = 1;
  std::vector<int> ranks_of_node{1};    ///< in node order
  int gpus_per_rank = 0;                ///< 0: any number is visible
  int ranks_per_gpu = 1;                ///< above 1, each rank sees one GPU
  std::optional<net::PortRange> ports;  ///< where ranks may listen; empty: below the ephemeral ports
  int cpus_per_rank = 0;                ///< 0: an even share of the node's cores
  std::vector<std::string> hosts;       ///< in node order
  std::string scheduler_job;            ///< "" outside Slurm
  bool is_part_of_job = false;          ///< other runs share the allocation
  std::optional<double> end_time;       ///< when the allocation ends, Unix seconds

  WorldSize world_size() const;
  /// The most on any node.
  int ranks_per_node() const;
  bool is_even() const;  ///< the same number on all nodes
  RankPlacement placement_of(Rank rank) const;
};

/// Facts for the plan that are not in the job.
struct LaunchContext {
  std::string host;
  std::optional<slurm::Allocation> allocation;
  std::optional<slurm::Task> task;  ///< set when this process is a task of a step
};
/// Reads them from this process's environment.
Result<LaunchContext> detect_launch_context();

/// The plan for a job here. Invalid when it needs more nodes than available, has no rank, or was started once
/// per task, which would start N runs of the same job.
Result<Plan> make_plan(const job::Job& job, const LaunchContext& context);

/// "rank/world size/local rank/local world size/node": the format of STOKER_PLACE.
std::string to_text(const RankPlacement& place);
/// Invalid "STOKER_PLACE: ..." for other text.
Result<RankPlacement> parse_placement(std::string_view text);

}  // namespace stoker::rank
