#include "observe/live.h"

#include <algorithm>
#include <cmath>

#include "observe/csv_tail.h"
#include "observe/gpu.h"
#include "record/run_events.h"

namespace stoker::observe {
namespace {

std::optional<double> last_of(const record::MetricTable& table, std::string_view column) {
  const auto values = table.column(column);
  if (values.empty() || !std::isfinite(values.back())) return std::nullopt;
  return values.back();
}

std::optional<std::int64_t> last_count(const record::MetricTable& table, std::string_view column) {
  const auto value = last_of(table, column);
  if (!value || std::fabs(*value) > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

double sum_of(std::span<const double> values) {
  double sum = 0;
  for (double value : values) sum += std::isfinite(value) ? value : 0;
  return sum;
}

void apply_steps(const record::MetricTable& table, LiveRank& rank) {
  rank.epoch = last_count(table, "epoch");
  rank.step = last_count(table, "step");
  const auto time = table.column("time");
  if (time.size() >= 2 && time.back() > time.front()) {
    const double seconds = time.back() - time.front();
    rank.steps_per_s = static_cast<double>(time.size() - 1) / seconds;
    const auto samples = table.column("samples");
    if (samples.size() == time.size()) rank.samples_per_s = sum_of(samples.subspan(1)) / seconds;
  }
  const double total = sum_of(table.column("step_s"));
  for (std::size_t i = 0; total > 0 && i < kStepParts.size(); ++i) {
    const auto column = table.column(format("{}_s", kStepParts[i]));
    if (!column.empty()) rank.shares[i] = sum_of(column) / total;
  }
}

// Of a program without a trainer that records its steps: the highest step, and steps per second of the metric
// with the most points.
void apply_points(const record::RankPoints& points, LiveRank& rank) {
  const std::vector<record::Point>* longest = nullptr;
  for (const auto& [name, series] : points.metrics) {
    const record::Point& last = series.back();
    rank.metrics.emplace(name, last);
    if (longest == nullptr || series.size() > longest->size()) longest = &series;
    rank.step = std::max(rank.step.value_or(0), last.step);
  }
  if (longest == nullptr || rank.steps_per_s) return;
  const record::Point& first = longest->front();
  const record::Point& last = longest->back();
  if (first.time > 0 && last.time > first.time)
    rank.steps_per_s = static_cast<double>(last.step - first.step) / (last.time - first.time);
}

void apply_all_points(const record::Attempt& attempt, std::vector<LiveRank>& ranks) {
  constexpr std::uint64_t kTail = 16 * 1024;
  const std::vector<record::PointFile> files = record::list_point_files(attempt);
  for (std::size_t begin = 0; begin < files.size();) {
    std::size_t end = begin;
    while (end < files.size() && files[end].rank == files[begin].rank) ++end;
    const auto rank = static_cast<std::size_t>(files[begin].rank);
    const auto own = std::span(files).subspan(begin, end - begin);
    if (rank < ranks.size()) apply_points(record::read_points(own, {.tail_bytes = kTail}), ranks[rank]);
    begin = end;
  }
}

void apply_rank_events(const record::EventLog& log, std::vector<LiveRank>& ranks) {
  const auto find_rank = [&](int rank) -> LiveRank* {
    return rank >= 0 && static_cast<std::size_t>(rank) < ranks.size() ? &ranks[static_cast<std::size_t>(rank)]
                                                                      : nullptr;
  };
  for (const record::Event& event : log.events) {
    if (const auto started = record::rank_started(event)) {
      if (LiveRank* rank = find_rank(started->rank)) rank->host = started->host;
    } else if (const auto ended = record::rank_ended(event)) {
      if (LiveRank* rank = find_rank(ended->rank)) rank->ended = ended->reason;
    }
  }
}

void add_gpus(const record::MetricTable& table, int node, LiveRun& run) {
  for (int gpu = 0; gpu < kMaxGpus && table.has(format("gpu{}.busy_percent", gpu)); ++gpu) {
    const auto last = [&](std::string_view what) { return last_of(table, format("gpu{}.{}", gpu, what)); };
    run.gpus.push_back({.node = node,
                        .number = gpu,
                        .busy_percent = last("busy_percent"),
                        .memory_bytes = last("memory_bytes"),
                        .memory_total_bytes = last("memory_total_bytes"),
                        .power_w = last("power_w"),
                        .sm_clock_mhz = last("sm_clock_mhz"),
                        .temperature_c = last("temperature_c"),
                        .throttle_reasons = last_count(table, format("gpu{}.throttle_reasons", gpu)),
                        .xids = {}});
  }
}

// The last values count from the first sample of the node; a tail lacks that one.
NodeEnergy energy_until_now(const record::MetricTable& table) {
  NodeEnergy energy{.cpu_j = last_value(table, "energy.cpu_j"),
                    .memory_j = last_value(table, "energy.memory_j"),
                    .node_j = last_value(table, "energy.node_j"),
                    .gpu_j = {}};
  for (int gpu = 0; gpu < kMaxGpus; ++gpu) {
    if (const auto joules = last_value(table, format("gpu{}.energy_j", gpu)))
      energy.gpu_j = energy.gpu_j.value_or(0) + *joules;
  }
  return energy;
}

std::optional<double> power_of(const record::MetricTable& table) {
  const auto time = table.column("time");
  const double seconds = time.empty() ? 0 : time.back() - time.front();
  if (!(seconds > 0)) return std::nullopt;
  const NodeEnergy energy = energy_of(table);
  if (energy.node_j) return *energy.node_j / seconds;
  std::optional<double> sum;
  for (const auto& part : {energy.cpu_j, energy.memory_j, energy.gpu_j}) {
    if (part) sum = sum.value_or(0) + *part;
  }
  return sum ? std::optional(*sum / seconds) : std::nullopt;
}

LiveNode describe_node(const record::MetricTable& table, int node, double now) {
  LiveNode live{.node = node, .host = "", .values = {}, .energy = energy_until_now(table)};
  live.age_s = std::max(0.0, now - last_of(table, "time").value_or(now));
  for (std::size_t i = 0; i < kMeasures; ++i) {
    const std::vector<double> values = values_of(table, kNodeMeasures[i]);
    if (!values.empty() && std::isfinite(values.back())) live.values[i] = values.back();
  }
  live.cpus = last_of(table, "job_cpus");
  live.memory_limit_bytes = last_of(table, "cgroup_memory_limit_bytes");
  if (!live.memory_limit_bytes) live.memory_limit_bytes = last_of(table, "host_memory_total_bytes");
  live.oom_kills = last_count(table, "cgroup_oom_kills");
  live.power_w = power_of(table);
  return live;
}

void add_node(const record::MetricTable& table, int node, double now, LiveRun& run) {
  run.nodes.push_back(describe_node(table, node, now));
  add_gpus(table, node, run);
  // Only a rank of this node has columns here.
  for (std::string_view column : table.columns) {
    constexpr std::string_view kEnd = ".cpu_cores";
    std::int64_t number = -1;
    if (!column.starts_with("rank") || !column.ends_with(kEnd)) continue;
    if (!parse_number(column.substr(4, column.size() - 4 - kEnd.size()), &number)) continue;
    if (number < 0 || static_cast<std::size_t>(number) >= run.ranks.size()) continue;
    LiveRank& rank = run.ranks[static_cast<std::size_t>(number)];
    rank.cpu_cores = last_of(table, column);
    rank.memory_bytes = last_of(table, format("rank{}.rss_bytes", number));
  }
}

void apply_node_events(const record::EventLog& log, LiveRun& run) {
  for (const record::Event& event : log.events) {
    if (const auto sampled = record::node_sampled(event)) {
      for (LiveNode& node : run.nodes) {
        if (node.node == sampled->node) node.host = sampled->host;
      }
    } else if (const auto fault = record::gpu_fault(event)) {
      for (LiveGpu& gpu : run.gpus) {
        if (gpu.node == fault->node && gpu.number == fault->gpu) gpu.xids.push_back(fault->code);
      }
    }
  }
}

void add_nodes(const record::Attempt& attempt, const record::EventLog& log, double now, LiveRun& run) {
  constexpr std::size_t kMostNodes = 4096;
  for (const int node : attempt.sampled_nodes()) {
    if (run.nodes.size() == kMostNodes) break;
    if (const auto table = read_tail(attempt.system(node))) add_node(*table, node, now, run);
  }
  apply_node_events(log, run);
  run.staged = record::staged_data(log);
}

void apply_beacon(const record::Attempt& attempt, double now, LiveRank& rank) {
  const auto seen = record::read_beacon(attempt.beacon(rank.rank));
  if (!seen.ok()) return;
  rank.beacon = *seen;
  if (seen->seen_unix_s > 0) rank.silent_s = std::max(0.0, now - seen->seen_unix_s);
  if (!rank.step || static_cast<std::int64_t>(seen->step) > *rank.step) {
    rank.epoch = seen->epoch;
    rank.step = static_cast<std::int64_t>(seen->step);
  }
}

}  // namespace

std::vector<record::LastValue> LiveRun::metrics() const {
  record::LastValues values;
  for (const LiveRank& rank : ranks) {
    for (const auto& [name, point] : rank.metrics) values.add(name, point);
  }
  return std::move(values).finish();
}

std::optional<double> LiveRun::samples_per_s() const {
  std::optional<double> sum;
  for (const LiveRank& rank : ranks) {
    if (rank.samples_per_s) sum = sum.value_or(0) + *rank.samples_per_s;
  }
  return sum;
}

LiveRun read_live_nodes(const record::Attempt& attempt, double now) {
  LiveRun run;
  const auto log = record::read_attempt_events(attempt.folder());
  add_nodes(attempt, log.ok() ? *log : record::EventLog(), now, run);
  return run;
}

LiveRun read_live_run(const record::Attempt& attempt, int world_size, double now, int at_most) {
  LiveRun run;
  run.ranks.resize(static_cast<std::size_t>(std::clamp(world_size, 0, at_most)));
  for (std::size_t i = 0; i < run.ranks.size(); ++i) run.ranks[i].rank = static_cast<int>(i);
  const auto log = record::read_attempt_events(attempt.folder());
  if (log.ok()) apply_rank_events(*log, run.ranks);
  for (LiveRank& rank : run.ranks) {
    if (const auto steps = read_tail(attempt.metrics(rank.rank))) apply_steps(*steps, rank);
    apply_beacon(attempt, now, rank);
  }
  apply_all_points(attempt, run.ranks);
  add_nodes(attempt, log.ok() ? *log : record::EventLog(), now, run);
  return run;
}

}  // namespace stoker::observe
