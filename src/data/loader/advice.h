// How many threads, how many batches ahead, and whether shards stay in memory: numbers for this machine and
// this dataset, each with its reason. Used by the Python module and by `stoker data bench`. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/language/words.h"
#include "base/process.h"
#include "data/loader.h"
#include "format/shard_source.h"

namespace stoker::data {

/// What this process may use.
struct Machine {
  std::uint32_t cores = 1;
  std::string cores_from;   ///< "affinity", "cgroup"
  std::uint32_t ranks = 1;  ///< that share those cores
  ByteCount memory{0};      ///< free, within the cgroup's limit
};

/// Reads affinity, cgroup and free memory under `root` ("/", or a twin in tests), and from the environment
/// how many ranks share the cores: LOCAL_WORLD_SIZE, unless Slurm gave each task cores of its own.
Machine this_machine(const Path& root, const Environment& environment);

/// What is to be loaded.
struct Feeding {
  std::uint64_t samples = 0;
  ByteCount stored{0};  ///< of all samples
  std::uint32_t batch = 1;
  ByteCount sample{0};  ///< one sample as it stands in a batch
};

/// What the user decided; the rest is advised.
struct Wanted {
  std::optional<std::uint32_t> threads;
  std::optional<std::uint32_t> prefetch;
  std::optional<ByteCount> resident;
};

/// Values for LoaderOptions, and a line for each that says why.
struct Advice {
  std::uint32_t threads = 1;
  std::uint32_t prefetch = 1;
  ByteCount resident{0};
  std::vector<std::string> reasons;
};
Advice advise(const Machine& machine, const Feeding& feeding, const Wanted& wanted);

/// That less of packed chunks is kept than one sample of the split touches: nearly every sample then unpacks
/// its own again.
struct SmallCache {
  std::string what;  ///< a line that says so
  ByteCount enough;  ///< to be kept in place of it
};
std::optional<SmallCache> small_cache(const formats::ShardSource& source, ByteCount kept,
                                      const Words& words = Words());

}  // namespace stoker::data
