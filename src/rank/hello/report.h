// What `stoker hello` learns: of each rank, of each way between two, of all together. Values; filled in by
// Session, judged by judge().
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/finding.h"
#include "base/language/words.h"
#include "base/strong.h"
#include "net/probe/interface.h"
#include "net/probe/peer.h"
#include "net/probe/resolve.h"
#include "net/probe/ring.h"

namespace stoker::rank::hello {

/// An InfiniBand or RoCE port.
struct FabricPort {
  std::string device;  ///< "mlx5_0"
  int port = 1;
  bool is_active = false;
  std::string state;  ///< "ACTIVE", "DOWN"

  friend bool operator==(const FabricPort&, const FabricPort&) = default;
};

/// What a rank says of its place.
struct RankFacts {
  Rank rank;
  std::string host;  ///< as the scheduler and people call it
  int node = 0;
  int local_rank = 0;
  std::vector<int> cores;                   ///< it may run on
  std::optional<std::string> visible_gpus;  ///< CUDA_VISIBLE_DEVICES
  std::vector<std::string> gpus;            ///< as nvidia-smi lists them, by index
  std::string gpu_problem;                  ///< "nvidia-smi gave no answer within 10.0 s"; or empty
  std::vector<net::Interface> interfaces;
  net::InterfaceChoice gloo;
  net::InterfaceChoice nccl;
  std::vector<FabricPort> fabric;
  std::map<std::string, std::string> variables;  ///< of kVariables, those that are set
  std::vector<std::string> addresses;            ///< where other ranks may call it
  int master_port = 0;                           ///< rank 0: the one that MASTER_PORT asks for; 0: none
  std::string master_problem;                    ///< why it cannot have it; or empty
  int free_port = 0;                             ///< rank 0: one that is free

  friend bool operator==(const RankFacts&, const RankFacts&) = default;
};
/// Variables that decide which network is used; told and compared.
inline constexpr std::string_view kVariables[] = {
    "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_IB_DISABLE", "NCCL_NET",   "NCCL_IB_HCA",
    "NCCL_SOCKET_FAMILY", "NCCL_P2P_DISABLE",   "NCCL_DEBUG",      "MASTER_ADDR"};

/// A rank that does not take part, or no longer.
struct Absent {
  Rank rank;
  std::string host;
  std::string rung;        ///< "start", "connect": where it was missed
  std::string why;         ///< "did not come within 30.0 s", "its connection broke"
  bool is_effect = false;  ///< srun ended it with all others, because of another one's node
};

/// A name as one rank sees it.
struct LookedUp {
  Rank rank;
  net::Resolved answer;
};

/// A way as its caller saw it.
struct TriedWay {
  Rank from;
  net::Way way;
  bool is_first = false;  ///< by the address that the training's own connections would take
};

struct MeasuredFlow {
  Rank from;
  net::Flow flow;
};

/// One line of the bandwidth table.
struct Timing {
  net::Operation operation = net::Operation::all_reduce;
  std::uint64_t bytes = 0;
  double seconds = 0;
  double bound_s = 0;  ///< what the slowest link alone allows

  /// Bytes of the whole operation by time, as people compare it.
  double bytes_per_s() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

/// A path that the job names, as it is here: the nodes are asked whether they see the same.
struct AskedPath {
  std::string key;  ///< "data.train.source"
  std::string path;
  bool is_written = false;   ///< a folder that ranks write to
  std::string probe;         ///< a file in it that was made for this; "" none
  std::uint64_t inode = 0;   ///< 0: not compared
  std::int64_t changed = 0;  ///< Unix seconds

  friend bool operator==(const AskedPath&, const AskedPath&) = default;
};

/// What a rank sees of its node's storage, and what its clock says.
struct NodeView {
  std::vector<std::string> problems;  ///< of each path that was asked for, in order; "" none
  std::string local;                  ///< the folder on the node's own disk
  ByteCount local_free;
  bool is_memory = false;    ///< that disk is memory
  double clock_s = 0;        ///< ahead of this process's clock
  double clock_error_s = 0;  ///< at most

  friend bool operator==(const NodeView&, const NodeView&) = default;
};

/// How far the ladder was climbed.
enum class RungState { passed, failed, skipped };
struct Rung {
  std::string name;  ///< "start", "names", "connect", "speed", "all-reduce"
  RungState state = RungState::skipped;
  std::string text;  ///< "6 of 6 ways between 3 nodes"; why it was skipped; in the language asked for
  double seconds = 0;
};

/// All of it.
struct Report {
  std::vector<std::string> hosts;  ///< in node order
  int ranks_per_node = 1;
  std::string scheduler_job;        ///< "" outside Slurm
  std::uint32_t gpus_wanted = 0;    ///< per rank, by the job
  std::map<Rank, RankFacts> ranks;  ///< those that came
  std::vector<Absent> absent;
  std::vector<LookedUp> names;
  std::vector<TriedWay> ways;
  std::vector<MeasuredFlow> flows;
  std::string ring_problem;   ///< why all ranks together could not, as rungs are told; or empty
  std::string torch_problem;  ///< why torch.distributed could not; or empty
  std::vector<Timing> timings;
  std::vector<AskedPath> paths;    ///< that were asked for
  ByteCount local_needed;          ///< on every node's own disk
  std::map<Rank, NodeView> views;  ///< empty where nobody was asked
  std::vector<Rung> rungs;
  double seconds = 0;
  Words words;  ///< that findings are told in

  bool has_several_hosts() const { return hosts.size() > 1; }
};

/// What is wrong, the worst first, each with its cure. Pure.
std::vector<Finding> judge(const Report& report);

/// The ranks whose ways to each other are tried: one per host, or all of one host.
std::vector<Rank> callers(const Report& report);

/// Measured pairs that are far slower than the others, or than any network between hosts.
std::vector<std::pair<Rank, Rank>> slow_pairs(const Report& report);

/// The slowest link that was measured; zeros when none was.
net::Link slowest_link(const Report& report);

}  // namespace stoker::rank::hello
