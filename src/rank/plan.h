// Which ranks a job has and where they run: on this machine, or as tasks inside a Slurm allocation. Also each
// rank's place in that plan. Values; functions without state.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/strong.h"
#include "job/job.h"
#include "net/port.h"
#include "slurm/allocation.h"

namespace stoker::rank {

/// How the ranks are started.
enum class Start { here, srun };

/// One rank's place.
struct Place {
  Rank rank;
  WorldSize world_size{1};
  int local_rank = 0;
  int local_world_size = 1;
  int node = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

/// The ranks of one attempt.
struct Plan {
  Start start = Start::here;
  bool has_torchrun = false;  ///< a torchrun on each node starts its ranks, in place of `start` itself
  int nodes = 1;
  std::vector<int> ranks_of_node{1};    ///< in node order
  int ranks_per_gpu = 1;                ///< above 1 each rank sees one GPU alone
  std::optional<net::PortRange> ports;  ///< where ranks may listen; empty: below those of clients
  int cpus_per_rank = 0;                ///< 0: the cores of a node shared out evenly
  std::vector<std::string> hosts;       ///< in node order
  std::string scheduler_job;            ///< "" outside Slurm
  std::optional<double> end_time;       ///< when the allocation ends, Unix seconds

  WorldSize world_size() const;
  /// The most of any node.
  int ranks_per_node() const;
  bool is_even() const;  ///< all nodes have as many
  Place place_of(Rank rank) const;
};

/// What decides the plan beside the job.
struct Surroundings {
  std::string host;
  std::optional<slurm::Allocation> allocation;
  std::optional<slurm::Task> task;  ///< set when this process is itself a task of a step
};
/// Reads them from this process's environment.
Result<Surroundings> look_around();

/// The plan for a job here. Invalid when it asks for more nodes than there are, for no rank at all, or when
/// it was started once per task, so that N runs of the same job would begin.
Result<Plan> make_plan(const job::Job& job, const Surroundings& surroundings);

/// "rank/world size/local rank/local world size/node", how `stoker run` tells a rank its place on this
/// machine.
std::string to_text(const Place& place);
/// Invalid "STOKER_PLACE: ..." when it is not that.
Result<Place> parse_place(std::string_view text);

}  // namespace stoker::rank
