// Node lists and task counts in Slurm's compact notation: "node[001-003,7],login", "2(x3),1". Does not need
// scontrol, which containers lack. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"

namespace stoker::slurm {

/// Maximum number of nodes or tasks: Slurm expands at most 64 Ki hosts of a range.
constexpr std::size_t kMaxNodes = 65536;

/// Node names in order, with duplicates: "n[01-02,5]-ib,m" is n01-ib, n02-ib, n5-ib, m. Several brackets in
/// one name form the cross product. Commas or line ends separate names. Empty for "" and for "(null)", which
/// Slurm prints for a pending job.
Result<std::vector<std::string>> expand_node_list(std::string_view text);

/// Number of tasks (or CPUs) of each node in order: "2(x3),1" is 2, 2, 2, 1.
Result<std::vector<int>> expand_per_node(std::string_view text);

}  // namespace stoker::slurm
