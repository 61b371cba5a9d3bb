// Processes and the host's memory from /proc. Parsers ignore unknown entries and report nothing
// for absent files: a sampler must never end a training. Tests pass their own folder. Thread-safe: no state.
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
  std::uint64_t read_calls = 0;   ///< read(2) and similar calls
  std::uint64_t write_calls = 0;
  bool has_io = false;   ///< of a sum: of at least one process; else the values of I/O are 0
  double started_s = 0;  ///< since boot; not added

  ProcessUsage& operator+=(const ProcessUsage& other);
};

/// Memory of the whole host.
struct HostMemory {
  std::uint64_t total_bytes = 0;
  std::uint64_t used_bytes = 0;  ///< total minus available
};

/// One process; nullopt if it has ended.
std::optional<ProcessUsage> read_process(const Path& proc, std::int64_t pid);
/// nullopt if /proc/meminfo cannot be read.
std::optional<HostMemory> read_host_memory(const Path& proc);
/// Seconds since boot; 0 if unreadable.
double read_uptime(const Path& proc);
/// (pid, parent pid) of every process. Reads one file per process of the host: use it every few seconds, not
/// per sample.
std::vector<std::pair<std::int64_t, std::int64_t>> read_parents(const Path& proc);

/// `root` and all its descendants among `parents`.
std::vector<std::int64_t> tree_of(std::int64_t root,
                                  const std::vector<std::pair<std::int64_t, std::int64_t>>& parents);

}  // namespace stoker::observe
