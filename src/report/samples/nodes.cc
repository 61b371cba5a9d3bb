#include "report/samples/nodes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stoker::report {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Adds a value to a sum that may be unrecorded so far.
void add_to(double& sum, const std::optional<double>& value) {
  if (!value || !std::isfinite(*value)) return;
  sum = (std::isfinite(sum) ? sum : 0) + *value;
}

void add_to(std::optional<double>& sum, const std::optional<double>& value) {
  if (value) sum = sum.value_or(0) + *value;
}

// CPU time of the ranks; in files of earlier versions the sum of their rates.
std::optional<double> cpu_time_of(const record::MetricTable& table) {
  if (const auto seconds = observe::increase_of(table, "ranks.cpu_s")) return seconds;
  const auto cores = observe::values_of(table, observe::kNodeMeasures[observe::measure_index("cpu_cores")]);
  if (!observe::mean_and_peak(cores)) return std::nullopt;
  return observe::total_of(table, cores);
}

std::optional<double> memory_limit_of(const record::MetricTable& table) {
  const auto limit = observe::last_value(table, "cgroup_memory_limit_bytes");
  return limit ? limit : observe::last_value(table, "host_memory_total_bytes");
}

double seconds_of(const record::MetricTable& table) {
  const auto time = table.column("time");
  constexpr double kLongest = 1e9;
  const double seconds = time.empty() ? 0 : time.back() - time.front();
  return seconds > 0 && seconds < kLongest ? seconds : 0;
}

}  // namespace

void NodeTable::add_samples(const record::MetricTable& table, int node) {
  Summary& summary = all_[node];
  NodeFacts& facts = summary.facts;
  if (!summary.has_samples) {
    facts.cpus = facts.ranks_cpu_s = facts.memory_limit = facts.oom_kills = facts.sampler_cpu_s = kUnknown;
    summary.sums.resize(observe::kMeasures);
    summary.has_samples = true;
  }
  facts.seconds += seconds_of(table);
  add_to(facts.ranks_cpu_s, cpu_time_of(table));
  add_to(facts.oom_kills, observe::increase_of(table, "cgroup_oom_kills"));
  add_to(facts.sampler_cpu_s, observe::increase_of(table, "sampler_cpu_s"));
  if (const auto cpus = observe::last_value(table, "job_cpus")) facts.cpus = *cpus;
  if (const auto limit = memory_limit_of(table)) facts.memory_limit = *limit;
  const observe::NodeEnergy energy = observe::energy_of(table);
  add_to(facts.energy.cpu_j, energy.cpu_j);
  add_to(facts.energy.memory_j, energy.memory_j);
  add_to(facts.energy.node_j, energy.node_j);
  add_to(facts.energy.gpu_j, energy.gpu_j);
  facts.energy.is_gpu_integrated |= energy.is_gpu_integrated;
  for (std::size_t i = 0; i < observe::kMeasures; ++i) {
    const std::vector<double> values = observe::values_of(table, observe::kNodeMeasures[i]);
    const auto found = observe::mean_and_peak(values);
    if (!found) continue;
    Sum& sum = summary.sums[i];
    const auto count = static_cast<std::size_t>(
        std::ranges::count_if(values, [](double value) { return std::isfinite(value); }));
    sum.peak = sum.samples == 0 ? found->peak : std::max(sum.peak, found->peak);
    sum.sum += found->mean * static_cast<double>(count);
    sum.samples += count;
    sum.total += observe::total_of(table, values);
  }
}

void NodeTable::add_events(const record::EventLog& log) {
  for (const record::Event& event : log.events) {
    const auto sampled = record::node_sampled(event);
    if (!sampled || !all_.contains(sampled->node)) continue;
    all_[sampled->node].facts.host = sampled->host;
    all_[sampled->node].facts.sources = sampled->sources;
  }
}

std::vector<NodeFacts> NodeTable::finish() {
  std::vector<NodeFacts> nodes;
  for (auto& [number, summary] : all_) {
    summary.facts.node = number;
    for (const Sum& sum : summary.sums) {
      const NodeUse none{kUnknown, kUnknown, kUnknown};
      summary.facts.use.push_back(
          sum.samples == 0 ? none : NodeUse{sum.sum / static_cast<double>(sum.samples), sum.peak, sum.total});
    }
    nodes.push_back(std::move(summary.facts));
  }
  return nodes;
}

Efficiency efficiency_of(const RunFacts& facts, const AttemptSource& last) {
  Efficiency found{.cpu_used_s = kUnknown,
                   .cpu_reserved_s = kUnknown,
                   .memory_peak = kUnknown,
                   .memory_node = "",
                   .memory_asked = kUnknown,
                   .seconds = last.facts->seconds(),
                   .time_limit = kUnknown,
                   .gpu_busy_mean = kUnknown};
  for (const NodeFacts& node : facts.nodes) {
    if (std::isfinite(node.ranks_cpu_s) && node.cpus > 0) {
      add_to(found.cpu_used_s, node.ranks_cpu_s);
      add_to(found.cpu_reserved_s, node.cpus * node.seconds);
    }
    const double peak = node.used("memory_bytes").peak;
    if (!std::isfinite(peak) || peak <= found.memory_peak) continue;
    found.memory_peak = peak;
    found.memory_node = node.host.empty() ? format("node {}", node.node) : printable(node.host);
    found.memory_asked = node.memory_limit;
    found.is_memory_limit = true;
  }
  double busy = 0;
  for (const GpuFacts& gpu : facts.gpus) {
    if (!std::isfinite(gpu.busy_mean)) continue;
    busy += gpu.busy_mean;
    ++found.gpus;
  }
  if (found.gpus > 0) found.gpu_busy_mean = busy / static_cast<double>(found.gpus);
  const auto job = job::load(last.attempt.job());
  if (!job.ok()) return found;
  if (job->resources.memory_per_node) {
    found.memory_asked = static_cast<double>(job->resources.memory_per_node->value);
    found.is_memory_limit = false;
  }
  const auto time = job->chain.time_per_link ? job->chain.time_per_link : job->resources.time;
  if (time) found.time_limit = Seconds(*time).count();
  return found;
}

}  // namespace stoker::report
