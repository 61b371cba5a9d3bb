// Node lists and task counts in Slurm's compact notation: "node[001-003,7],login", "2(x3),1". Needs no
// scontrol, which containers do not have. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace stoker::slurm {

/// More nodes or tasks than this are refused: Slurm itself expands at most 64 Ki hosts of a range.
constexpr std::size_t kMostNodes = 65536;

/// Node names in order, doubles kept: "n[01-02,5]-ib,m" is n01-ib, n02-ib, n5-ib, m. Several brackets in one
/// name make the cross product; commas or line ends part names. Empty for "", and for "(null)", which Slurm
/// writes while a job is pending.
Result<std::vector<std::string>> expand_node_list(std::string_view text);

/// Tasks (or CPUs) of each node in order: "2(x3),1" is 2, 2, 2, 1.
Result<std::vector<int>> expand_per_node(std::string_view text);

}  // namespace stoker::slurm
