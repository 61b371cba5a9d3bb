// Samples CPU, memory and I/O of each rank (with its children), of this host and its cgroup, and the GPUs
// once per second, as one CSV row per node. The supervisor of a node runs it next to its ranks. SystemSampler
// belongs to one thread; SamplerThread is that thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "observe/gpu.h"
#include "observe/proc.h"
#include "record/metrics.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::observe {

/// A rank as known by its supervisor.
struct RankProcess {
  int rank = 0;
  std::int64_t pid = 0;
};

/// Where to read; tests pass their own folders.
struct SamplerOptions {
  Path proc = "/proc";
  Path cgroup_root = "/sys/fs/cgroup";
  bool wants_gpus = true;
  std::string nvml = kNvmlLibrary;
  Duration every = std::chrono::seconds(1);
};

/// Takes samples and writes them. Rates are relative to the previous sample; the first row has none (nan).
/// Columns: time, host_cpu_percent, host_memory_bytes, host_memory_total_bytes, cgroup_memory_bytes,
/// cgroup_memory_limit_bytes; for each rank R: rankR.cpu_cores, rankR.rss_bytes, rankR.read_bytes_per_s,
/// rankR.write_bytes_per_s, rankR.asked_bytes_per_s; for each GPU G: gpuG.busy_percent, gpuG.memory_bytes,
/// gpuG.power_w, gpuG.memory_total_bytes, gpuG.sm_clock_mhz, gpuG.memory_clock_mhz, gpuG.temperature_c,
/// gpuG.throttle_reasons (NVML's bits as a number), gpuG.ecc_errors.
class SystemSampler {
 public:
  /// Creates `file` (record::Attempt::system(node)). Exists if it exists.
  static Result<SystemSampler> create(const Path& file, std::vector<RankProcess> ranks,
                                      const SamplerOptions& options = {});

  /// Writes one row for the time `unix_s`, `mono_s` on the monotonic clock.
  Status sample(double unix_s, double mono_s);
  /// Xid errors since the last call. Not part of the rows.
  std::vector<GpuXid> poll_xids() { return gpus_.poll_xids(); }
  const std::vector<GpuDevice>& gpus() const { return gpus_.devices(); }

 private:
  SystemSampler(record::MetricWriter writer, std::vector<RankProcess> ranks, const SamplerOptions& options,
                GpuReader gpus);
  void add_host(std::vector<double>& row);
  void add_rank(std::vector<double>& row, const RankProcess& rank, double seconds);
  void add_gpus(std::vector<double>& row) const;
  void refresh_trees();

  SamplerOptions options_;
  record::MetricWriter writer_;
  std::vector<RankProcess> ranks_;
  GpuReader gpus_;
  std::map<int, std::vector<std::int64_t>> trees_;  // by rank
  std::map<int, ProcessUsage> before_;
  HostUsage host_before_;
  double mono_before_ = 0;
  int samples_ = 0;
};

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

 private:
  explicit SamplerThread(SystemSampler sampler, Duration every);
  void run(StopToken stop);
  void poll_xids();

  SystemSampler sampler_;
  const std::vector<GpuDevice> devices_;
  const Duration every_;
  Mutex mu_;
  Condition wake_;
  bool is_over_ STOKER_GUARDED_BY(mu_) = false;
  std::vector<GpuXid> xids_ STOKER_GUARDED_BY(mu_);
  Thread thread_;  // last member: the thread uses everything above
};

}  // namespace stoker::observe
