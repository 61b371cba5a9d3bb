// Properties of a Slurm cluster: name, release, limits, partitions with their nodes, the user's accounts.
// Parsed from the output of scontrol, sinfo and sshare in every release. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::slurm {

/// Nodes of the same kind in a partition.
struct PartitionNodes {
  std::string partition;
  bool is_default = false;
  std::optional<Duration> time;          ///< nullopt: no limit
  std::optional<Duration> default_time;  ///< nullopt: none, or same as `time`
  std::uint64_t nodes = 0;
  std::uint64_t cores = 0;
  ByteCount memory;
  ByteCount disk;
  std::string gpu;  ///< "a100"; "gpu" without a type; "" without GPUs
  std::uint64_t gpus = 0;
};

struct ClusterInfo {
  std::string name;
  std::string version;
  std::optional<std::uint64_t> max_array_size;
  std::vector<PartitionNodes> partitions;
  std::vector<std::string> accounts;  ///< of this user; empty without accounting
};

/// Parses name, version and limits from `scontrol show config`. Corrupt without ClusterName.
Status parse_config(std::string_view text, ClusterInfo& facts);

/// Arguments of sinfo, and the parser of its output. Malformed rows are skipped; Corrupt without a valid row.
std::vector<std::string> sinfo_arguments();
Result<std::vector<PartitionNodes>> parse_partitions(std::string_view text);

/// The unique accounts in `sshare --noheader --parsable2 --format=Account,User`.
std::vector<std::string> parse_accounts(std::string_view text);

/// "gpu:a100:4(S:0-1)" as {"a100", 4}, "gpu:2" as {"gpu", 2}, "(null)" as {"", 0}. Only the first GPU type
/// counts.
std::pair<std::string, std::uint64_t> parse_gpus(std::string_view gres);

}  // namespace stoker::slurm
