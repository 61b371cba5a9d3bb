#include "observe/system_sampler.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace stoker::observe {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr int kSamplesPerTree = 5;  // finding new children reads every process of the host
constexpr std::string_view kGpuColumns[] = {"busy_percent",       "memory_bytes",     "power_w",
                                            "memory_total_bytes", "sm_clock_mhz",     "memory_clock_mhz",
                                            "temperature_c",      "throttle_reasons", "ecc_errors"};

double to_double(std::optional<std::uint64_t> value) { return value ? static_cast<double>(*value) : kNone; }

/// Increase per second; a counter that decreased (a child ended unobserved) counts as unchanged.
double rate(double before, double now, double seconds) { return std::max(0.0, now - before) / seconds; }
double rate(std::uint64_t before, std::uint64_t now, double seconds) {
  return rate(static_cast<double>(before), static_cast<double>(now), seconds);
}

std::vector<std::string> column_names(const std::vector<RankProcess>& ranks, std::size_t gpus) {
  std::vector<std::string> names = {"time",
                                    "host_cpu_percent",
                                    "host_memory_bytes",
                                    "host_memory_total_bytes",
                                    "cgroup_memory_bytes",
                                    "cgroup_memory_limit_bytes"};
  for (const RankProcess& rank : ranks) {
    for (std::string_view what :
         {"cpu_cores", "rss_bytes", "read_bytes_per_s", "write_bytes_per_s", "asked_bytes_per_s"}) {
      names.push_back(format("rank{}.{}", rank.rank, what));
    }
  }
  for (std::size_t i = 0; i < gpus; ++i) {
    for (std::string_view what : kGpuColumns) names.push_back(format("gpu{}.{}", i, what));
  }
  return names;
}

}  // namespace

SystemSampler::SystemSampler(record::MetricWriter writer, std::vector<RankProcess> ranks,
                             const SamplerOptions& options, GpuReader gpus)
    : options_(options), writer_(std::move(writer)), ranks_(std::move(ranks)), gpus_(std::move(gpus)) {}

Result<SystemSampler> SystemSampler::create(const Path& file, std::vector<RankProcess> ranks,
                                            const SamplerOptions& options) {
  std::sort(ranks.begin(), ranks.end(),
            [](const RankProcess& a, const RankProcess& b) { return a.rank < b.rank; });
  GpuReader gpus = options.wants_gpus ? GpuReader::open(options.nvml) : GpuReader();
  const std::vector<std::string> names = column_names(ranks, gpus.devices().size());
  const std::vector<std::string_view> views(names.begin(), names.end());
  STOKER_ASSIGN_OR_RETURN(writer, record::MetricWriter::create(file, views));
  return SystemSampler(std::move(writer), std::move(ranks), options, std::move(gpus));
}

Status SystemSampler::sample(double unix_s, double mono_s) {
  if (samples_ % kSamplesPerTree == 0) refresh_trees();
  const double seconds = samples_ == 0 ? kNone : std::max(1e-3, mono_s - mono_before_);
  std::vector<double> row = {unix_s};
  add_host(row);
  for (const RankProcess& rank : ranks_) add_rank(row, rank, seconds);
  add_gpus(row);
  mono_before_ = mono_s;
  ++samples_;
  return writer_.append(row);
}

void SystemSampler::add_host(std::vector<double>& row) {
  const auto host = read_host(options_.proc);
  const double total = host ? host->total_s - host_before_.total_s : 0;
  const bool has_rate = host && samples_ > 0 && total > 0;
  row.push_back(has_rate ? std::clamp(100 * (host->busy_s - host_before_.busy_s) / total, 0.0, 100.0)
                         : kNone);
  row.push_back(host ? static_cast<double>(host->memory_used_bytes) : kNone);
  row.push_back(host ? static_cast<double>(host->memory_total_bytes) : kNone);
  host_before_ = host.value_or(HostUsage());
  const auto cgroup = read_cgroup_memory(options_.proc, options_.cgroup_root);
  row.push_back(cgroup ? static_cast<double>(cgroup->used_bytes) : kNone);
  row.push_back(cgroup ? to_double(cgroup->limit_bytes) : kNone);
}

void SystemSampler::add_rank(std::vector<double>& row, const RankProcess& rank, double seconds) {
  ProcessUsage now;
  bool is_there = false;
  for (std::int64_t pid : trees_[rank.rank]) {
    const auto use = read_process(options_.proc, pid);
    if (!use) continue;
    now += *use;
    is_there = true;
  }
  if (!is_there) {
    row.insert(row.end(), 5, kNone);
    before_.erase(rank.rank);
    return;
  }
  const auto found = before_.find(rank.rank);
  const bool has_rate = found != before_.end();
  const ProcessUsage before = has_rate ? found->second : ProcessUsage();
  row.push_back(has_rate ? rate(before.cpu_s, now.cpu_s, seconds) : kNone);
  row.push_back(static_cast<double>(now.rss_bytes));
  row.push_back(has_rate ? rate(before.read_bytes, now.read_bytes, seconds) : kNone);
  row.push_back(has_rate ? rate(before.write_bytes, now.write_bytes, seconds) : kNone);
  row.push_back(has_rate ? rate(before.asked_bytes, now.asked_bytes, seconds) : kNone);
  before_[rank.rank] = now;
}

void SystemSampler::add_gpus(std::vector<double>& row) const {
  for (const GpuUsage& use : gpus_.read()) {
    row.push_back(use.busy_percent.value_or(kNone));
    row.push_back(to_double(use.memory_bytes));
    row.push_back(use.power_w.value_or(kNone));
    row.push_back(to_double(use.memory_total_bytes));
    row.push_back(use.sm_clock_mhz.value_or(kNone));
    row.push_back(use.memory_clock_mhz.value_or(kNone));
    row.push_back(use.temperature_c.value_or(kNone));
    row.push_back(to_double(use.throttle_reasons));
    row.push_back(to_double(use.ecc_errors));
  }
}

void SystemSampler::refresh_trees() {
  const auto parents = read_parents(options_.proc);
  for (const RankProcess& rank : ranks_) trees_[rank.rank] = tree_of(rank.pid, parents);
}

Result<std::unique_ptr<SamplerThread>> SamplerThread::start(const Path& file, std::vector<RankProcess> ranks,
                                                            const SamplerOptions& options) {
  STOKER_ASSIGN_OR_RETURN(sampler, SystemSampler::create(file, std::move(ranks), options));
  std::unique_ptr<SamplerThread> thread(new SamplerThread(std::move(sampler), options.every));
  SamplerThread* self = thread.get();
  thread->thread_ = Thread([self](StopToken stop) { self->run(stop); });
  return thread;
}

SamplerThread::SamplerThread(SystemSampler sampler, Duration every)
    : sampler_(std::move(sampler)), devices_(sampler_.gpus()), every_(every) {}

SamplerThread::~SamplerThread() { stop(); }

void SamplerThread::stop() {
  {
    MutexLock lock(mu_);
    is_over_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

std::vector<GpuXid> SamplerThread::take_xids() {
  MutexLock lock(mu_);
  return std::exchange(xids_, {});
}

void SamplerThread::poll_xids() {
  const std::vector<GpuXid> found = sampler_.poll_xids();
  MutexLock lock(mu_);
  xids_.insert(xids_.end(), found.begin(), found.end());
}

void SamplerThread::run(StopToken stop) {
  const RealClock clock;
  while (!stop.stop_requested()) {
    const MonoTime now = clock.mono();
    (void)sampler_.sample(unix_seconds(clock.wall()), Seconds(now.time_since_epoch()).count());
    poll_xids();
    const Deadline next = Deadline::at(now + every_);
    MutexLock lock(mu_);
    while (!is_over_ && !next.passed()) wake_.wait(mu_, next);
    if (is_over_) break;
  }
  // An error of a GPU often ends the ranks within a second.
  poll_xids();
}

}  // namespace stoker::observe
