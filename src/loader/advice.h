// Recommends the number of threads, the prefetch depth and whether to keep shards in memory, for this
// machine and dataset, each with a reason. Used by the Python module and by `stoker data bench`.
// Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/language/translator.h"
#include "base/process.h"
#include "dataset/shard_source.h"
#include "stoker/bytes.h"
#include "stoker/loader.h"

namespace stoker::loader {

/// The resources of this process.
struct Machine {
  std::uint32_t cores = 1;
  std::string cores_from;   ///< "affinity", "cgroup"
  std::uint32_t ranks = 1;  ///< sharing those cores
  ByteCount memory{0};      ///< free, within the cgroup's limit
};

/// Reads CPU affinity, cgroup limits and free memory under `root` ("/", or a copy in tests). The environment
/// has the number of ranks that share the cores: LOCAL_WORLD_SIZE, unless Slurm gave each task separate
/// cores.
Machine detect_machine(const Path& root, const Environment& environment);

/// The data to load.
struct LoaderWorkload {
  std::uint64_t samples = 0;
  ByteCount stored{0};  ///< of all samples
  std::uint32_t batch = 1;
  ByteCount sample{0};  ///< one sample in a batch
};

/// Values set by the user; the rest is recommended.
struct LoaderOverrides {
  std::optional<std::uint32_t> threads;
  std::optional<std::uint32_t> prefetch;
  std::optional<ByteCount> resident;
};

/// Values for LoaderOptions, and one line with the reason for each.
struct Advice {
  std::uint32_t threads = 1;
  std::uint32_t prefetch = 1;
  ByteCount resident{0};
  std::vector<std::string> reasons;
};
Advice advise(const Machine& machine, const LoaderWorkload& workload, const LoaderOverrides& overrides);

/// Warns that the chunk cache is smaller than the chunks of one sample: nearly every sample then unpacks its
/// chunks again.
struct ChunkCacheWarning {
  Message message;        ///< one line for the log
  ByteCount recommended;  ///< new size of the cache
};
std::optional<ChunkCacheWarning> check_chunk_cache(const dataset::ShardSource& source, ByteCount kept);

}  // namespace stoker::loader
