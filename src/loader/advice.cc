#include "loader/advice.h"

#include <algorithm>
#include <sched.h>

namespace stoker::loader {
namespace {

// For larger samples, a system call per sample is small beside reading and decoding.
constexpr std::uint64_t kSmallSample = 64u << 10;
constexpr std::uint64_t kMaxResident = 8_GiB .value;
constexpr std::uint32_t kLeastPrefetch = 2;
constexpr std::uint32_t kUsualPrefetch = 4;
// For larger batches, one ready batch is enough: a batch takes far longer than waking a thread.
constexpr std::uint64_t kLargeBatch = 16u << 20;

std::uint64_t number_of(const Environment& environment, std::string_view name) {
  std::uint64_t value = 0;
  for (const auto& [key, text] : environment) {
    if (key == name && parse_number(text, &value)) return value;
  }
  return 0;
}

// "MemAvailable:  400 kB" in /proc/meminfo.
std::uint64_t free_memory(const Path& root) {
  const Result<std::string> text = read_pseudo_file(root / "proc/meminfo");
  if (!text.ok()) return 0;
  for (std::string_view line : split(*text, '\n')) {
    if (!line.starts_with("MemAvailable:")) continue;
    line.remove_prefix(line.find(':') + 1);
    std::uint64_t value = 0;
    return parse_number(trim(line.substr(0, line.find('k'))), &value) ? value * 1024 : 0;
  }
  return 0;
}

// This process's folder in the unified hierarchy, and its parents, whose limits apply too.
std::vector<Path> cgroup_folders(const Path& root) {
  std::vector<Path> folders;
  const Result<std::string> text = read_pseudo_file(root / "proc/self/cgroup");
  if (!text.ok()) return folders;
  for (std::string_view line : split(*text, '\n')) {
    if (!line.starts_with("0::/")) continue;
    const Path top = root / "sys/fs/cgroup";
    Path folder = top / line.substr(4);
    while (folder != top && folder.string().size() > top.string().size()) {
      folders.push_back(folder);
      folder = folder.parent_path();
    }
    folders.push_back(top);
  }
  return folders;
}

// cpu.max is "<microseconds> <per microseconds>" or "max <...>".
std::optional<std::uint32_t> cgroup_cores(const Path& folder) {
  const Result<std::string> text = read_pseudo_file(folder / "cpu.max");
  if (!text.ok()) return std::nullopt;
  const std::vector<std::string_view> words = split(trim(*text), ' ');
  std::uint64_t quota = 0;
  std::uint64_t period = 0;
  if (words.size() != 2 || !parse_number(words[0], &quota) || !parse_number(words[1], &period) || period == 0)
    return std::nullopt;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>((quota + period - 1) / period, 1, 1u << 20));
}

std::optional<std::uint64_t> cgroup_memory_left(const Path& folder) {
  std::uint64_t limit = 0;
  std::uint64_t used = 0;
  const Result<std::string> most = read_pseudo_file(folder / "memory.max");
  const Result<std::string> current = read_pseudo_file(folder / "memory.current");
  if (!most.ok() || !current.ok() || !parse_number(trim(*most), &limit) ||
      !parse_number(trim(*current), &used))
    return std::nullopt;
  return limit > used ? limit - used : 0;
}

}  // namespace

Machine detect_machine(const Path& root, const Environment& environment) {
  Machine machine;
  machine.cores_from = "affinity";
  machine.memory.value = free_memory(root);
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (::sched_getaffinity(0, sizeof mine, &mine) == 0)
    machine.cores = static_cast<std::uint32_t>(CPU_COUNT(&mine));
  const std::uint32_t bound = machine.cores;
  for (const Path& folder : cgroup_folders(root)) {
    if (const auto cores = cgroup_cores(folder); cores && *cores < machine.cores) {
      machine.cores = *cores;
      machine.cores_from = "cgroup";
    }
    if (const auto left = cgroup_memory_left(folder))
      machine.memory.value = std::min(machine.memory.value, *left);
  }
  const std::uint64_t ranks = number_of(environment, "LOCAL_WORLD_SIZE");
  const bool has_own_cores = number_of(environment, "SLURM_CPUS_PER_TASK") == bound;
  if (ranks > 1 && !has_own_cores)
    machine.ranks = static_cast<std::uint32_t>(std::min<std::uint64_t>(ranks, 1u << 20));
  return machine;
}

Advice advise(const Machine& machine, const LoaderWorkload& workload, const LoaderOverrides& overrides) {
  Advice advice;
  const std::uint64_t mine = machine.memory.value / std::max(1u, machine.ranks);
  advice.threads = overrides.threads.value_or(std::max(1u, machine.cores / std::max(1u, machine.ranks)));
  if (overrides.threads) {
    advice.reasons.push_back(format("threads {}: as requested", advice.threads));
  } else {
    advice.reasons.push_back(format("threads {}: {} core{} ({}){}", advice.threads, machine.cores,
                                    machine.cores == 1 ? "" : "s", machine.cores_from,
                                    machine.ranks > 1 ? format(" shared by {} ranks", machine.ranks) : ""));
  }
  const std::uint64_t batch = std::max<std::uint64_t>(1, workload.batch * workload.sample.value);
  // Small batches: every thread needs work.
  const std::uint32_t usual = batch > kLargeBatch ? kLeastPrefetch : kUsualPrefetch;
  const std::uint32_t useful = std::max(usual, 1 + 4 * advice.threads / std::max(1u, workload.batch));
  const std::uint64_t most = std::max<std::uint64_t>(kLeastPrefetch, mine / 8 / batch);
  advice.prefetch =
      overrides.prefetch.value_or(static_cast<std::uint32_t>(std::min<std::uint64_t>(useful, most)));
  std::string why = overrides.prefetch ? "as requested"
                    : most < useful    ? "an eighth of the free memory"
                                       : "keeps all threads busy";
  advice.reasons.push_back(format("prefetch {}: {}; batches of {}, {} in all", advice.prefetch, why,
                                  rounded({batch}), rounded({batch * advice.prefetch})));
  const std::uint64_t mean = workload.samples > 0 ? workload.stored.value / workload.samples : 0;
  const bool fits = workload.stored.value <= std::min(kMaxResident, mine / 4);
  if (overrides.resident) {
    advice.resident = *overrides.resident;
    why = "as requested";
  } else if (mean > kSmallSample) {
    why = format("samples of {} are read one by one", rounded({mean}));
  } else if (!fits) {
    why = format("the {} of this split exceed a quarter of the free memory", rounded(workload.stored));
  } else {
    advice.resident = workload.stored;
    why = format("small samples ({}) are read from the storage in large blocks, once", rounded({mean}));
  }
  advice.reasons.push_back(format("resident {}: {}", rounded(advice.resident), why));
  return advice;
}

std::optional<ChunkCacheWarning> check_chunk_cache(const dataset::ShardSource& source, ByteCount kept) {
  std::uint64_t needed = 0;
  for (const dataset::IndexSection* shard : source.samples().sections()) {
    if (shard->chunks() != nullptr) needed = std::max(needed, shard->chunks()->max_sample_chunk_bytes());
  }
  if (needed <= kept.value) return std::nullopt;
  constexpr std::uint64_t kUnit = 1u << 20;
  // Twice that much, because neighbouring samples may be on both sides of a chunk border.
  const ByteCount enough{(2 * needed + kUnit - 1) / kUnit * kUnit};
  return ChunkCacheWarning{
      message("the chunks of one sample unpack to {}, but the cache holds {}: nearly every sample "
              "unpacks its chunks again",
              rounded({needed}), rounded(kept)),
      enough};
}

}  // namespace stoker::loader
