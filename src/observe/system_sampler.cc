#include "observe/system_sampler.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <utility>

#include "base/file.h"

namespace stoker::observe {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr int kSamplesPerTree = 5;  // finding new children reads every process of the host
// Shares of a core: the samples, and the search for new children.
constexpr double kSampleShare = 0.004;
constexpr double kTreeShare = 0.001;
constexpr std::string_view kRankColumns[] = {"cpu_cores",         "rss_bytes",         "read_bytes_per_s",
                                             "write_bytes_per_s", "asked_bytes_per_s", "read_calls_per_s",
                                             "write_calls_per_s"};
constexpr std::string_view kGpuColumns[] = {
    "busy_percent",     "memory_bytes",  "power_w",          "memory_total_bytes", "sm_clock_mhz",
    "memory_clock_mhz", "temperature_c", "throttle_reasons", "ecc_errors",         "energy_j"};

/// Rounded so that rows stay short: a day has 86 400 of them.
double rounded_to(double value, double unit) { return std::round(value / unit) * unit; }
double thousandths(double value) { return std::round(value * 1e3) / 1e3; }
double hundredths(double value) { return std::round(value * 1e2) / 1e2; }

double to_double(const Counter& value) { return value ? static_cast<double>(*value) : kNone; }
double whole(const std::optional<double>& value) { return value ? rounded_to(*value, 1) : kNone; }
double exact(const std::optional<double>& value) { return value.value_or(kNone); }

double cpu_seconds_of_this_thread() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double busy_percent(const std::optional<CoreUse>& before, const std::optional<CoreUse>& now) {
  const double total = before && now ? now->total_s - before->total_s : 0;
  if (!(total > 0)) return kNone;
  return hundredths(std::clamp(100 * (now->busy_s - before->busy_s) / total, 0.0, 100.0));
}

/// Increase per second of a sum over processes: one that decreased (a child ended unobserved) counts as
/// unchanged. No machine has a rate above `most`.
double process_rate(double before, double now, double seconds, double most) {
  const double rate = std::max(0.0, now - before) / seconds;
  return rate <= most ? rate : kNone;
}

struct RankRates {
  double cpu_s = 0;  // not a column: the increase itself
  double values[std::size(kRankColumns)] = {kNone, kNone, kNone, kNone, kNone, kNone, kNone};

  /// Unknown values count as 0 in the sum, unless all are unknown.
  void add(const RankRates& other) {
    for (std::size_t i = 0; i < std::size(values); ++i) {
      if (!std::isfinite(other.values[i])) continue;
      values[i] = (std::isfinite(values[i]) ? values[i] : 0) + other.values[i];
    }
  }
};

RankRates rates_of(const ProcessUsage* before, const ProcessUsage& now, double seconds) {
  constexpr double kMostCores = 1e5;
  constexpr double kMostPerSecond = 1e14;
  RankRates rates;
  rates.values[1] = static_cast<double>(now.rss_bytes);
  if (before == nullptr) return rates;
  const double cores = process_rate(before->cpu_s, now.cpu_s, seconds, kMostCores);
  rates.values[0] = thousandths(cores);
  if (std::isfinite(cores)) rates.cpu_s = cores * seconds;
  if (!now.has_io) return rates;
  const std::pair<std::uint64_t, std::uint64_t> counters[] = {{before->read_bytes, now.read_bytes},
                                                              {before->write_bytes, now.write_bytes},
                                                              {before->asked_bytes, now.asked_bytes},
                                                              {before->read_calls, now.read_calls},
                                                              {before->write_calls, now.write_calls}};
  for (std::size_t i = 0; i < std::size(counters); ++i) {
    rates.values[i + 2] =
        rounded_to(process_rate(static_cast<double>(counters[i].first),
                                static_cast<double>(counters[i].second), seconds, kMostPerSecond),
                   1);
  }
  return rates;
}

std::set<int> cores_of(const Path& proc, const std::vector<RankProcess>& ranks) {
  std::set<int> cores;
  for (const RankProcess& rank : ranks) cores.merge(allowed_cpus(proc, rank.pid));
  return cores;
}

}  // namespace

SystemSampler::SystemSampler(std::vector<RankProcess> ranks, const SamplerOptions& options)
    : options_(options),
      ranks_(std::move(ranks)),
      gpus_(options.wants_gpus ? GpuReader::open(options.nvml) : GpuReader()),
      cgroup_(JobCgroup::find(options.roots)),
      network_(NetworkReader::find(options.roots)),
      filesystems_(FilesystemReader::find(options.roots)),
      energy_(EnergyReader::find(options.roots)),
      cores_(cores_of(options.roots.proc, ranks_)),
      gpu_energy_start_(gpus_.devices().size()) {}

Result<SystemSampler> SystemSampler::create(const Path& file, std::vector<RankProcess> ranks,
                                            const SamplerOptions& options) {
  std::sort(ranks.begin(), ranks.end(),
            [](const RankProcess& a, const RankProcess& b) { return a.rank < b.rank; });
  SystemSampler sampler(std::move(ranks), options);
  const std::vector<std::string> names = sampler.columns();
  const std::vector<std::string_view> views(names.begin(), names.end());
  auto writer = record::MetricWriter::create(file, views);
  if (writer.status().code() == Code::exists) writer = record::MetricWriter::reopen(file, views);
  if (!writer.ok()) return std::move(writer).error();
  sampler.writer_ = std::move(*writer);
  return sampler;
}

std::vector<std::string> SystemSampler::columns() const {
  std::vector<std::string> names = {"time",
                                    "host_cpu_percent",
                                    "host_memory_bytes",
                                    "host_memory_total_bytes",
                                    "cgroup_memory_bytes",
                                    "cgroup_memory_limit_bytes",
                                    "cgroup_oom_kills",
                                    "cgroup_cpu_cores",
                                    "job_cpus",
                                    "job_cpu_percent",
                                    "sampler_cpu_s"};
  for (const std::string& link : network_.names()) {
    for (std::string_view what : {"received", "sent"})
      names.push_back(format("{}.{}_bytes_per_s", link, what));
  }
  if (filesystems_.has_shared()) {
    for (std::string_view what : {"read_bytes", "write_bytes", "opens"})
      names.push_back(format("shared.{}_per_s", what));
  }
  if (filesystems_.has_local()) {
    for (std::string_view what : {"read_bytes", "write_bytes"})
      names.push_back(format("local.{}_per_s", what));
  }
  if (energy_.has_cpu()) names.emplace_back("energy.cpu_j");
  if (energy_.has_memory()) names.emplace_back("energy.memory_j");
  if (energy_.has_node()) names.emplace_back("energy.node_j");
  names.emplace_back("ranks.cpu_s");
  for (std::string_view what : kRankColumns) names.push_back(format("ranks.{}", what));
  for (std::size_t i = 0; i < std::min(ranks_.size(), kMostRankColumns); ++i) {
    for (std::string_view what : kRankColumns) names.push_back(format("rank{}.{}", ranks_[i].rank, what));
  }
  for (std::size_t i = 0; i < gpus_.devices().size(); ++i) {
    for (std::string_view what : kGpuColumns) names.push_back(format("gpu{}.{}", i, what));
  }
  return names;
}

NodeSources SystemSampler::sources() const {
  NodeSources found{.cpus = static_cast<int>(cores_.size()), .texts = {}};
  const auto add = [&](std::string_view what, const std::string& text) {
    if (!text.empty()) found.texts.push_back(format("{}: {}", what, text));
  };
  add("memory", cgroup_.name());
  add("network", join(network_.names(), ", "));
  add("shared filesystems", filesystems_.counted());
  add("shared filesystems without counters", filesystems_.uncounted());
  add("energy", energy_.source());
  return found;
}

Status SystemSampler::sample(double unix_s, double mono_s) {
  const double cpu_before = cpu_seconds_of_this_thread();
  trees_cost_s_ = 0;
  if (samples_ % kSamplesPerTree == 0 && mono_s >= next_trees_s_) refresh_trees(mono_s);
  const double seconds = samples_ == 0 ? kNone : std::max(1e-3, mono_s - mono_before_);
  std::vector<double> row = {thousandths(unix_s)};
  add_host(row, seconds);
  add_sources(row, seconds, mono_s);
  add_ranks(row, seconds);
  add_gpus(row);
  mono_before_ = mono_s;
  ++samples_;
  const Status written = writer_.append(row);
  cost_s_ = cpu_seconds_of_this_thread() - cpu_before - trees_cost_s_;
  return written;
}

void SystemSampler::add_host(std::vector<double>& row, double seconds) {
  const auto stat = read_pseudo_file(options_.roots.proc / "stat");
  const auto host = stat.ok() ? core_use(*stat, {}) : std::nullopt;
  const auto cores = stat.ok() && !cores_.empty() ? core_use(*stat, cores_) : std::nullopt;
  const auto memory = read_host_memory(options_.roots.proc);
  row.push_back(busy_percent(host_before_, host));
  row.push_back(memory ? static_cast<double>(memory->used_bytes) : kNone);
  row.push_back(memory ? static_cast<double>(memory->total_bytes) : kNone);
  const CgroupUse group = cgroup_.read();
  row.push_back(to_double(group.memory_bytes));
  row.push_back(to_double(group.limit_bytes));
  row.push_back(to_double(group.oom_kills));
  const bool has_cpu = group.cpu_s && cgroup_cpu_before_ && *group.cpu_s >= *cgroup_cpu_before_;
  row.push_back(has_cpu ? thousandths((*group.cpu_s - *cgroup_cpu_before_) / seconds) : kNone);
  row.push_back(cores_.empty() ? kNone : static_cast<double>(cores_.size()));
  row.push_back(busy_percent(cores_before_, cores));
  row.push_back(thousandths(cpu_seconds_of_this_thread()));
  host_before_ = host;
  cores_before_ = cores;
  cgroup_cpu_before_ = group.cpu_s;
}

void SystemSampler::add_sources(std::vector<double>& row, double seconds, double mono_s) {
  std::vector<LinkUse> links = network_.read();
  links_before_.resize(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    row.push_back(whole(rate_between(links_before_[i].received_bytes, links[i].received_bytes, seconds)));
    row.push_back(whole(rate_between(links_before_[i].sent_bytes, links[i].sent_bytes, seconds)));
  }
  links_before_ = std::move(links);
  add_filesystems(row, seconds);
  const EnergyUse energy = energy_.read(mono_s);
  if (energy_.has_cpu()) row.push_back(hundredths(exact(energy.cpu_j)));
  if (energy_.has_memory()) row.push_back(hundredths(exact(energy.memory_j)));
  if (energy_.has_node()) row.push_back(hundredths(exact(energy.node_j)));
}

void SystemSampler::add_filesystems(std::vector<double>& row, double seconds) {
  if (filesystems_.has_shared()) {
    const FilesystemUse now = filesystems_.shared();
    row.push_back(whole(rate_between(shared_before_.read_bytes, now.read_bytes, seconds)));
    row.push_back(whole(rate_between(shared_before_.write_bytes, now.write_bytes, seconds)));
    row.push_back(whole(rate_between(shared_before_.opens, now.opens, seconds)));
    shared_before_ = now;
  }
  if (filesystems_.has_local()) {
    const FilesystemUse now = filesystems_.local();
    row.push_back(whole(rate_between(local_before_.read_bytes, now.read_bytes, seconds)));
    row.push_back(whole(rate_between(local_before_.write_bytes, now.write_bytes, seconds)));
    local_before_ = now;
  }
}

void SystemSampler::add_ranks(std::vector<double>& row, double seconds) {
  RankRates sum;
  std::vector<double> own;
  std::size_t columns = 0;
  for (const RankProcess& rank : ranks_) {
    ProcessUsage now;
    bool is_there = false;
    for (std::int64_t pid : trees_[rank.rank]) {
      const auto use = read_process(options_.roots.proc, pid);
      if (!use) continue;
      now += *use;
      is_there = true;
    }
    RankRates rates;
    if (is_there) {
      const auto before = ranks_before_.find(rank.rank);
      rates = rates_of(before == ranks_before_.end() ? nullptr : &before->second, now, seconds);
      ranks_before_[rank.rank] = now;
    } else {
      ranks_before_.erase(rank.rank);
    }
    ranks_cpu_s_ += rates.cpu_s;
    sum.add(rates);
    if (columns++ < kMostRankColumns) own.insert(own.end(), std::begin(rates.values), std::end(rates.values));
  }
  row.push_back(hundredths(ranks_cpu_s_));
  sum.values[0] = thousandths(sum.values[0]);
  row.insert(row.end(), std::begin(sum.values), std::end(sum.values));
  row.insert(row.end(), own.begin(), own.end());
}

void SystemSampler::add_gpus(std::vector<double>& row) {
  std::size_t gpu = 0;
  for (const GpuUsage& use : gpus_.read()) {
    row.push_back(exact(use.busy_percent));
    row.push_back(to_double(use.memory_bytes));
    row.push_back(exact(use.power_w));
    row.push_back(to_double(use.memory_total_bytes));
    row.push_back(exact(use.sm_clock_mhz));
    row.push_back(exact(use.memory_clock_mhz));
    row.push_back(exact(use.temperature_c));
    row.push_back(to_double(use.throttle_reasons));
    row.push_back(to_double(use.ecc_errors));
    Counter& start = gpu_energy_start_[gpu++];
    // A driver that is loaded again starts from 0.
    if (use.energy_mj && (!start || *use.energy_mj < *start)) start = use.energy_mj;
    const bool has_energy = use.energy_mj && start;
    row.push_back(has_energy ? static_cast<double>(*use.energy_mj - *start) / 1e3 : kNone);
  }
}

void SystemSampler::refresh_trees(double mono_s) {
  const double cpu_before = cpu_seconds_of_this_thread();
  const auto parents = read_parents(options_.roots.proc);
  for (const RankProcess& rank : ranks_) {
    std::vector<std::int64_t> tree = tree_of(rank.pid, parents);
    for (const std::int64_t pid : tree) {
      const std::vector<std::int64_t>& known = trees_[rank.rank];
      if (samples_ > 0 && std::find(known.begin(), known.end(), pid) == known.end())
        discount_earlier_use(rank.rank, pid, mono_s - mono_before_);
    }
    trees_[rank.rank] = std::move(tree);
  }
  trees_cost_s_ = cpu_seconds_of_this_thread() - cpu_before;
  next_trees_s_ = mono_s + trees_cost_s_ / kTreeShare;
}

// A child is found up to five samples after its start: what it used until the previous sample must not count
// as the use of one interval. Its use until then is estimated from its age.
void SystemSampler::discount_earlier_use(int rank, std::int64_t pid, double seconds) {
  const auto before = ranks_before_.find(rank);
  const auto use = read_process(options_.roots.proc, pid);
  if (before == ranks_before_.end() || !use) return;
  const double age = read_uptime(options_.roots.proc) - use->started_s;
  if (!(age > seconds)) return;
  const double part = 1 - seconds / age;
  const auto scaled = [&](std::uint64_t value) {
    return static_cast<std::uint64_t>(static_cast<double>(value) * part);
  };
  before->second.cpu_s += use->cpu_s * part;
  ranks_cpu_s_ += use->cpu_s * part;
  before->second.read_bytes += scaled(use->read_bytes);
  before->second.write_bytes += scaled(use->write_bytes);
  before->second.asked_bytes += scaled(use->asked_bytes);
  before->second.read_calls += scaled(use->read_calls);
  before->second.write_calls += scaled(use->write_calls);
}

Duration pause_after(Duration every, double cpu_s) {
  if (every < std::chrono::seconds(1)) return every;
  const auto least =
      std::chrono::duration_cast<Duration>(Seconds(std::clamp(cpu_s / kSampleShare, 0.0, 3600.0)));
  return std::max(every, least);
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
    : sampler_(std::move(sampler)), devices_(sampler_.gpus()), sources_(sampler_.sources()), every_(every) {}

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
    const Deadline next = Deadline::at(now + pause_after(every_, sampler_.cost_s()));
    MutexLock lock(mu_);
    while (!is_over_ && !next.passed()) wake_.wait(mu_, next);
    if (is_over_) break;
  }
  // An error of a GPU often ends the ranks within a second.
  poll_xids();
}

}  // namespace stoker::observe
