// Values from /proc and the cgroup folders. Parsers ignore unknown entries and report nothing for absent
// files: a sampler must never end a training. Root folders can be replaced in tests. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stoker/text.h"

namespace stoker::observe {

/// Usage of one process, or the sum over a process tree.
struct ProcessUsage {
  double cpu_s = 0;               ///< user and system, including children it has waited for
  std::uint64_t rss_bytes = 0;    ///< resident; pages shared between processes count in each
  std::uint64_t read_bytes = 0;   ///< from storage
  std::uint64_t write_bytes = 0;  ///< to storage
  std::uint64_t asked_bytes = 0;  ///< by read(2) and similar calls, including the page cache; not by mmap

  ProcessUsage& operator+=(const ProcessUsage& other);
};

/// Whole-host counters.
struct HostUsage {
  double busy_s = 0;   ///< CPU seconds not idle, over all cores, since boot
  double total_s = 0;  ///< CPU seconds of all cores
  std::uint64_t memory_total_bytes = 0;
  std::uint64_t memory_used_bytes = 0;  ///< total minus available
};

/// Memory of this process's control group, v1 or v2.
struct CgroupMemory {
  std::uint64_t used_bytes = 0;
  std::optional<std::uint64_t> limit_bytes;  ///< nullopt: no limit
};

/// One process; nullopt if it has ended.
std::optional<ProcessUsage> read_process(const Path& proc, std::int64_t pid);
/// nullopt if /proc/stat or /proc/meminfo cannot be read.
std::optional<HostUsage> read_host(const Path& proc);
/// nullopt without cgroups or without permission to read them.
std::optional<CgroupMemory> read_cgroup_memory(const Path& proc, const Path& cgroup_root);
/// (pid, parent pid) of every process. Reads one file per process of the host: use it every few seconds, not
/// per sample.
std::vector<std::pair<std::int64_t, std::int64_t>> read_parents(const Path& proc);

/// `root` and all its descendants among `parents`.
std::vector<std::int64_t> tree_of(std::int64_t root,
                                  const std::vector<std::pair<std::int64_t, std::int64_t>>& parents);

}  // namespace stoker::observe
