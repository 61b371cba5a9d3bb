// What a Slurm cluster tells of itself: name, release, limits, partitions with their nodes, one's accounts.
// Read from the text that scontrol, sinfo and sshare print in every release. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"

namespace stoker::slurm {

/// Nodes of one kind in a partition.
struct PartitionNodes {
  std::string partition;
  bool is_default = false;
  std::optional<Duration> time;          ///< empty: no limit
  std::optional<Duration> default_time;  ///< empty: none, or as `time`
  std::uint64_t nodes = 0;
  std::uint64_t cores = 0;
  ByteCount memory;
  ByteCount disk;
  std::string gpu;  ///< "a100"; "gpu" for one without a type; "" without GPUs
  std::uint64_t gpus = 0;
};

struct ClusterFacts {
  std::string name;
  std::string version;
  std::optional<std::uint64_t> max_array_size;
  std::vector<PartitionNodes> partitions;
  std::vector<std::string> accounts;  ///< of this user; empty where nobody counts
};

/// Fills name, version and limits from `scontrol show config`. Corrupt when there is no ClusterName in it.
Status parse_config(std::string_view text, ClusterFacts& facts);

/// What sinfo is asked for, and its answer. Rows that are none are passed over; Corrupt when there is none at
/// all.
std::vector<std::string> sinfo_arguments();
Result<std::vector<PartitionNodes>> parse_partitions(std::string_view text);

/// The accounts in `sshare --noheader --parsable2 --format=Account,User`, each once.
std::vector<std::string> parse_accounts(std::string_view text);

/// "gpu:a100:4(S:0-1)" as {"a100", 4}, "gpu:2" as {"gpu", 2}, "(null)" as {"", 0}; of several the first
/// GPU's.
std::pair<std::string, std::uint64_t> parse_gpus(std::string_view gres);

}  // namespace stoker::slurm
