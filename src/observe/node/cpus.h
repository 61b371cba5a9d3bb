// The cores that a job may use on this node, and how busy they are. Thread-safe: no state.
#pragma once

#include <set>
#include <vector>

#include "observe/node/counter.h"

namespace stoker::observe {

/// "0-3,8" → 0, 1, 2, 3, 8; ignores what is not a range of at most 8192 cores.
std::set<int> parse_cpu_list(std::string_view text);
/// The cores that a process may use; empty if it has ended.
std::set<int> allowed_cpus(const Path& proc, std::int64_t pid);

/// CPU seconds of one core since boot.
struct CoreUse {
  double busy_s = 0;  ///< not idle, and not waiting for I/O
  double total_s = 0;
};
/// From the content of /proc/stat: the sum of `cores`; of all cores if it is empty. nullopt if no line fits.
std::optional<CoreUse> core_use(std::string_view stat, const std::set<int>& cores);

}  // namespace stoker::observe
