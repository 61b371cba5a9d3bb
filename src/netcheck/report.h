// The results of `stoker hello`: facts of each rank, of each connection, and of all ranks together. Values;
// filled in by NetworkCheck, judged by judge().
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/finding.h"
#include "base/language/message.h"
#include "net/interface.h"
#include "netcheck/probe/peer.h"
#include "netcheck/probe/resolve.h"
#include "netcheck/probe/ring.h"
#include "observe/gpu.h"
#include "stoker/bytes.h"
#include "stoker/strong.h"

namespace stoker::netcheck {

/// An InfiniBand or RoCE port.
struct FabricPort {
  std::string device;  ///< "mlx5_0"
  int port = 1;
  bool is_active = false;
  std::string state;  ///< "ACTIVE", "DOWN"

  friend bool operator==(const FabricPort&, const FabricPort&) = default;
};

/// Two GPUs of a node, by their numbers in nvidia-smi.
struct GpuLink {
  int first = 0;
  int second = 0;
  int nvlinks = 0;  ///< of the one with fewer; 0: they are not connected by NVLink
  std::optional<observe::GpuPath> path;
  std::optional<bool> has_peer_access;

  friend bool operator==(const GpuLink&, const GpuLink&) = default;
};

/// Facts that a rank reports about itself.
struct RankFacts {
  Rank rank;
  std::string host;  ///< as the scheduler and users call it
  int node = 0;
  int local_rank = 0;
  std::vector<int> cores;                   ///< of its affinity mask
  std::optional<std::string> visible_gpus;  ///< CUDA_VISIBLE_DEVICES
  std::vector<std::string> gpus;            ///< from nvidia-smi, by index
  std::string gpu_problem;                  ///< "nvidia-smi did not answer within 10.0 s"; or empty
  int gpu = -1;                             ///< the number of the one that it would use; -1: none, or unknown
  std::string gpu_uuid;                     ///< of that one, or of its MIG device; "": unknown
  std::string unknown_gpu;         ///< id in CUDA_VISIBLE_DEVICES that no GPU of the node has; or empty
  double gpu_bytes_per_s = 0;      ///< limit of its links in one direction; 0: unknown
  std::vector<GpuLink> gpu_links;  ///< local rank 0: of the node
  std::vector<net::Interface> interfaces;
  net::InterfaceChoice gloo;
  net::InterfaceChoice nccl;
  std::vector<FabricPort> fabric;
  std::map<std::string, std::string> variables;  ///< the kVariables that are set
  std::vector<std::string> addresses;            ///< where peers can connect
  int master_port = 0;                           ///< rank 0: the port requested by MASTER_PORT; 0: none
  std::string master_problem;                    ///< why it is unusable; or empty
  int free_port = 0;                             ///< rank 0: a free port

  friend bool operator==(const RankFacts&, const RankFacts&) = default;
};
/// Variables that select the network; reported and compared.
inline constexpr std::string_view kVariables[] = {
    "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE", "NCCL_NET",   "NCCL_IB_HCA",
    "NCCL_SOCKET_FAMILY", "NCCL_P2P_DISABLE",   "NCCL_DEBUG",      "MASTER_ADDR"};

/// A rank that did not join or was lost.
struct AbsentRank {
  Rank rank;
  std::string host;
  std::string step;        ///< "start", "connect": the step where it was missed
  std::string why;         ///< "did not join within 30.0 s", "its connection broke"
  bool is_effect = false;  ///< srun ended it because a different node failed
};

/// One rank's lookup of a name.
struct NameLookup {
  Rank rank;
  netcheck::ResolvedName answer;
};

/// A connection as seen by its initiator.
struct ConnectionProbe {
  Rank from;
  netcheck::Route way;
  bool is_first = false;  ///< to the address that the training's connections would use
};

struct MeasuredFlow {
  Rank from;
  netcheck::FlowResult flow;
};

/// One line of the bandwidth table.
struct Timing {
  netcheck::Operation operation = netcheck::Operation::all_reduce;
  std::uint64_t bytes = 0;
  double seconds = 0;
  double bound_s = 0;  ///< lower bound from the slowest link

  /// Bytes of the whole operation per second, the usual figure.
  double bytes_per_s() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

/// One all-reduce over NCCL. Its speeds are defined as in nccl-tests.
struct GpuTiming {
  std::uint64_t bytes = 0;
  double seconds = 0;
  double bound_bytes_per_s = 0;  ///< of the slowest GPU's links; 0: unknown
  int ranks = 1;

  double algorithm_bytes_per_s() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
  /// What each link carries: a ring sends 2(n-1)/n of the bytes over it.
  double bus_bytes_per_s() const { return algorithm_bytes_per_s() * 2 * (ranks - 1) / ranks; }
};

/// A path of the job as seen here. The nodes check whether they see the same.
struct CheckedPath {
  std::string key;  ///< "data.train.source"
  std::string path;
  bool is_written = false;   ///< ranks write to it
  std::string probe;         ///< a file in it that was created for the check; "" without one
  std::uint64_t inode = 0;   ///< 0: not compared
  std::int64_t changed = 0;  ///< Unix seconds

  friend bool operator==(const CheckedPath&, const CheckedPath&) = default;
};

/// A rank's view of its node's storage, and of its clock.
struct NodeView {
  std::vector<std::string> problems;  ///< per checked path, in order; "" without a problem
  std::string local;                  ///< the folder on the node's local disk
  ByteCount local_free;
  bool is_memory = false;    ///< that disk is in memory
  double clock_s = 0;        ///< difference to this process's clock
  double clock_error_s = 0;  ///< largest error of the above

  friend bool operator==(const NodeView&, const NodeView&) = default;
};

/// State of a step of the network check.
enum class CheckState { passed, failed, skipped };
struct CheckStep {
  std::string name;  ///< "start", "names", "connect", "speed", "all-reduce"
  CheckState state = CheckState::skipped;
  Message text;  ///< "6 of 6 connections between 3 nodes", or why it was skipped
  double seconds = 0;
};

/// The complete report.
struct Report {
  std::vector<std::string> hosts;  ///< in node order
  int ranks_per_node = 1;
  std::string scheduler_job;        ///< "" outside Slurm
  std::uint32_t gpus_wanted = 0;    ///< per rank, by the job
  std::map<Rank, RankFacts> ranks;  ///< ranks that joined
  std::vector<AbsentRank> absent;
  std::vector<NameLookup> names;
  std::vector<ConnectionProbe> ways;
  std::vector<MeasuredFlow> flows;
  Message ring_problem;   ///< why the all-reduce failed; or empty
  Message torch_problem;  ///< why torch.distributed failed; or empty
  std::vector<Timing> timings;
  std::vector<GpuTiming> gpu_timings;  ///< by torch, if it used NCCL
  std::vector<CheckedPath> paths;      ///< checked paths
  ByteCount local_needed;              ///< needed on every node's local disk
  std::map<Rank, NodeView> views;      ///< empty without a storage check
  std::vector<CheckStep> steps;
  double seconds = 0;

  bool has_several_hosts() const { return hosts.size() > 1; }
};

/// The problems, worst first, with their cures. Pure.
std::vector<Finding> judge(const Report& report);

/// The ranks that test connections to each other: one per host, or the ranks of a single host.
std::vector<Rank> probing_ranks(const Report& report);

/// Measured pairs far slower than the other ones, or than any network between hosts.
std::vector<std::pair<Rank, Rank>> slow_pairs(const Report& report);

/// The slowest measured link; zeros without one.
netcheck::Link slowest_link(const Report& report);

}  // namespace stoker::netcheck
