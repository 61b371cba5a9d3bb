// Samples a node of a run once per second, as one CSV row: CPU, memory and I/O of each rank (with its
// children), of the job's cores, of its cgroup and of the host; network, filesystems, energy and GPUs. One
// process per node runs it next to the ranks. SystemSampler belongs to one thread; SamplerThread is that
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "observe/gpu.h"
#include "observe/node/cgroup.h"
#include "observe/node/cpus.h"
#include "observe/node/energy.h"
#include "observe/node/filesystems.h"
#include "observe/node/network.h"
#include "observe/node/proc.h"
#include "record/metrics.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::observe {

/// A rank as known by its supervisor.
struct RankProcess {
  int rank = 0;
  std::int64_t pid = 0;
};

/// Ranks with separate columns; the rest of a larger node only counts in the sums.
inline constexpr std::size_t kMostRankColumns = 64;

/// Where to read; tests pass their own folders.
struct SamplerOptions {
  NodeRoots roots;
  bool wants_gpus = true;
  std::string nvml = kNvmlLibrary;
  Duration every = std::chrono::seconds(1);
};

/// What a sampler found to read on its node.
struct NodeSources {
  int cpus = 0;                    ///< cores that the ranks may use
  std::vector<std::string> texts;  ///< "energy: cpu: RAPL package-0", "not readable: gpfs /gpfs", ...
};

/// Takes samples and writes them. Rates are relative to the previous sample; the first row has none (nan).
/// Columns: docs/formats/run.md#metrics. A source that the node lacks has no columns.
class SystemSampler {
 public:
  /// Creates `file` (record::Attempt::system(node)), or continues it if it exists and has the same columns;
  /// else Exists. A successor continues the file of a process that has stopped sampling.
  static Result<SystemSampler> create(const Path& file, std::vector<RankProcess> ranks,
                                      const SamplerOptions& options = {});

  /// Writes one row for the time `unix_s`, `mono_s` on the monotonic clock.
  Status sample(double unix_s, double mono_s);
  /// Xid errors since the last call. Not part of the rows.
  std::vector<GpuXid> poll_xids() { return gpus_.poll_xids(); }
  const std::vector<GpuDevice>& gpus() const { return gpus_.devices(); }
  NodeSources sources() const;
  /// CPU seconds of the last sample, without the search for new children, which limits itself.
  double cost_s() const { return cost_s_; }

 private:
  SystemSampler(std::vector<RankProcess> ranks, const SamplerOptions& options);
  std::vector<std::string> columns() const;
  void add_host(std::vector<double>& row, double seconds);
  void add_sources(std::vector<double>& row, double seconds, double mono_s);
  void add_filesystems(std::vector<double>& row, double seconds);
  void add_ranks(std::vector<double>& row, double seconds);
  void add_gpus(std::vector<double>& row);
  void refresh_trees(double mono_s);
  void discount_earlier_use(int rank, std::int64_t pid, double seconds);

  SamplerOptions options_;
  record::MetricWriter writer_;
  std::vector<RankProcess> ranks_;
  GpuReader gpus_;
  JobCgroup cgroup_;
  NetworkReader network_;
  FilesystemReader filesystems_;
  EnergyReader energy_;
  std::set<int> cores_;                             // that the ranks may use
  std::map<int, std::vector<std::int64_t>> trees_;  // by rank
  double next_trees_s_ = 0;
  double trees_cost_s_ = 0;
  double cost_s_ = 0;
  double ranks_cpu_s_ = 0;  // since the first sample
  // Of the previous sample.
  std::map<int, ProcessUsage> ranks_before_;
  std::optional<CoreUse> host_before_;
  std::optional<CoreUse> cores_before_;
  std::optional<double> cgroup_cpu_before_;
  std::vector<LinkUse> links_before_;
  FilesystemUse shared_before_;
  FilesystemUse local_before_;
  std::vector<Counter> gpu_energy_start_;  // of the first sample
  double mono_before_ = 0;
  int samples_ = 0;
};

/// The pause from one sample to the next: `every`, or longer so that samples that cost `cpu` seconds of a
/// core use at most 0.4 % of it. An interval shorter than a second was chosen by the user, and is kept.
Duration pause_after(Duration every, double cpu_s);

/// Samples in its own thread until it is destroyed. A sample that cannot be written (disk full) is dropped.
class SamplerThread {
 public:
  /// Starts immediately. Fails if the file cannot be created; the run continues without samples.
  static Result<std::unique_ptr<SamplerThread>> start(const Path& file, std::vector<RankProcess> ranks,
                                                      const SamplerOptions& options = {});
  ~SamplerThread();

  /// Ends the samples after a last search for Xid errors. Further calls do nothing.
  void stop();
  /// Xid errors that were found since the last call. Thread-safe.
  std::vector<GpuXid> take_xids();
  /// The sampled GPUs; never changes. Thread-safe.
  const std::vector<GpuDevice>& gpus() const { return devices_; }
  /// The sources of the rows; never changes. Thread-safe.
  const NodeSources& sources() const { return sources_; }

 private:
  explicit SamplerThread(SystemSampler sampler, Duration every);
  void run(StopToken stop);
  void poll_xids();

  SystemSampler sampler_;
  const std::vector<GpuDevice> devices_;
  const NodeSources sources_;
  const Duration every_;
  Mutex mu_;
  Condition wake_;
  bool is_over_ STOKER_GUARDED_BY(mu_) = false;
  std::vector<GpuXid> xids_ STOKER_GUARDED_BY(mu_);
  Thread thread_;  // last member: the thread uses everything above
};

}  // namespace stoker::observe
