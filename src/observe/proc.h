// What /proc and the cgroup folders say, as plain values. Parsers tolerate what they do not know and say
// nothing where a file is absent: a sampler must never end a training. Roots are injectable. Thread-safe: no
// state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"

namespace stoker::observe {

/// Of one process or summed over a tree of them.
struct ProcessUse {
  double cpu_s = 0;               ///< user and system, with children it has waited for
  std::uint64_t rss_bytes = 0;    ///< resident; pages shared between processes count in each
  std::uint64_t read_bytes = 0;   ///< from storage
  std::uint64_t write_bytes = 0;  ///< to storage
  std::uint64_t asked_bytes = 0;  ///< by read(2) and its kin, from the page cache too; not through mmap

  ProcessUse& operator+=(const ProcessUse& other);
};

/// Whole-host counters.
struct HostUse {
  double busy_s = 0;   ///< CPU seconds not idle, over all cores, since boot
  double total_s = 0;  ///< CPU seconds of all cores
  std::uint64_t memory_total_bytes = 0;
  std::uint64_t memory_used_bytes = 0;  ///< total minus available
};

/// Memory of the control group this process runs in, v1 or v2.
struct CgroupMemory {
  std::uint64_t used_bytes = 0;
  std::optional<std::uint64_t> limit_bytes;  ///< nullopt: none is set
};

/// One process; nullopt when it is gone.
std::optional<ProcessUse> read_process(const Path& proc, std::int64_t pid);
/// nullopt where /proc/stat or /proc/meminfo cannot be read.
std::optional<HostUse> read_host(const Path& proc);
/// nullopt without cgroups or rights to read them.
std::optional<CgroupMemory> read_cgroup_memory(const Path& proc, const Path& cgroup_root);
/// (pid, parent pid) of every process. One read per process of the host: seconds apart, not per sample.
std::vector<std::pair<std::int64_t, std::int64_t>> read_parents(const Path& proc);

/// `root` and all its descendants among `parents`.
std::vector<std::int64_t> tree_of(std::int64_t root,
                                  const std::vector<std::pair<std::int64_t, std::int64_t>>& parents);

}  // namespace stoker::observe
