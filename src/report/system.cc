#include "report/system.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "record/metrics.h"

namespace stoker::report {

namespace {

/// A chart and which columns of the system files belong to it.
struct ChartRule {
  std::string_view title;
  std::string_view unit;
  std::string_view column;  ///< suffix of the column name after "rankN" or "gpuN", or the full name
  std::string_view label;   ///< "": the part before the '.' is the series name
};

constexpr ChartRule kRules[] = {
    {"CPU", "cores", ".cpu_cores", ""},
    {"CPU of the whole host", "%", "host_cpu_percent", "host"},
    {"Memory of ranks", "bytes", ".rss_bytes", ""},
    {"Memory of the host", "bytes", "host_memory_bytes", "host"},
    {"Memory of the cgroup", "bytes", "cgroup_memory_bytes", "cgroup"},
    {"Read from storage", "bytes/s", ".read_bytes_per_s", ""},
    {"Read, page cache included", "bytes/s", ".asked_bytes_per_s", ""},
    {"Written to storage", "bytes/s", ".write_bytes_per_s", ""},
    {"GPU busy", "%", ".busy_percent", ""},
    {"GPU memory", "bytes", ".memory_bytes", ""},
    {"GPU power", "W", ".power_w", ""},
    {"GPU clock", "MHz", ".sm_clock_mhz", ""},
    {"GPU temperature", "°C", ".temperature_c", ""},
};

std::string series_name(const ChartRule& rule, std::string_view column, int node, bool has_nodes) {
  std::string name(rule.label.empty() ? column.substr(0, column.find('.')) : rule.label);
  for (std::string_view word : {"rank", "gpu"}) {
    if (name.starts_with(word)) name.insert(word.size(), " ");
  }
  if (has_nodes && !name.starts_with("rank")) name += format(" of node {}", node);
  return name;
}

/// Reduces the series to at most `most` points, means of neighbours.
void downsample(Series& series, std::size_t most) {
  if (series.x.size() <= most) return;
  const std::size_t bin = (series.x.size() + most - 1) / most;
  Series thinned{series.name, {}, {}};
  for (std::size_t begin = 0; begin < series.x.size(); begin += bin) {
    const std::size_t end = std::min(begin + bin, series.x.size());
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += series.y[i];
    thinned.x.push_back(series.x[(begin + end) / 2]);
    thinned.y.push_back(sum / static_cast<double>(end - begin));
  }
  series = std::move(thinned);
}

/// Series by name for each rule, over nodes and attempts.
class Charts {
 public:
  void add(const AttemptSource& source, const record::MetricTable& table, int node, bool has_nodes) {
    const auto time = table.column("time");
    if (time.empty()) return;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const std::string& column = table.columns[c];
      for (std::size_t r = 0; r < std::size(kRules); ++r) {
        const bool fits = kRules[r].column.starts_with('.')
                              ? column.ends_with(kRules[r].column) && is_indexed(column)
                              : column == kRules[r].column;
        if (fits) append(r, series_name(kRules[r], column, node, has_nodes), source, time, table.values[c]);
      }
    }
    const auto total = table.column("host_memory_total_bytes");
    const auto limit = table.column("cgroup_memory_limit_bytes");
    if (!total.empty()) note_limit("host_memory_bytes", total.back());
    if (!limit.empty()) note_limit("cgroup_memory_bytes", limit.back());
  }

  std::vector<SystemChart> finish() {
    constexpr std::size_t kPoints = 300;
    constexpr std::size_t kMaxSeries = 16;
    std::vector<SystemChart> charts;
    for (std::size_t r = 0; r < std::size(kRules); ++r) {
      const ChartRule& rule = kRules[r];
      SystemChart chart{std::string(rule.title),
                        std::string(rule.unit),
                        format("system-*.csv, {}{}", rule.column.starts_with('.') ? "*" : "", rule.column),
                        {},
                        limits_[std::string(rule.column)]};
      for (const std::string& name : order_[r]) {
        Series series = std::move(series_[r][name]);
        series.name = name;
        downsample(series, kPoints);
        if (!series.x.empty() && chart.series.size() < kMaxSeries) chart.series.push_back(std::move(series));
      }
      if (!chart.series.empty()) charts.push_back(std::move(chart));
    }
    return charts;
  }

 private:
  static bool is_indexed(std::string_view column) {
    const std::string_view stem = column.substr(0, column.find('.'));
    for (std::string_view word : {"rank", "gpu"}) {
      std::int64_t index = 0;
      if (stem.starts_with(word) && parse_number(stem.substr(word.size()), &index)) return true;
    }
    return false;
  }
  void append(std::size_t rule, const std::string& name, const AttemptSource& source,
              std::span<const double> time, std::span<const double> values) {
    if (!series_[rule].contains(name)) order_[rule].push_back(name);
    Series& series = series_[rule][name];
    if (!series.x.empty() && source.before > series.x.back()) {  // a gap between attempts
      series.x.push_back(source.before);
      series.y.push_back(std::numeric_limits<double>::quiet_NaN());
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i]) || !std::isfinite(time[i])) continue;
      series.x.push_back(source.run_time(time[i]));
      series.y.push_back(values[i]);
    }
  }
  void note_limit(const std::string& column, double limit) {
    if (std::isfinite(limit)) limits_[column] = std::max(limits_[column], limit);
  }

  std::map<std::string, Series> series_[std::size(kRules)];
  std::vector<std::string> order_[std::size(kRules)];
  std::map<std::string, double> limits_;
};

}  // namespace

void read_system(const std::vector<AttemptSource>& attempts, RunFacts& facts) {
  Charts charts;
  for (const AttemptSource& source : attempts) {
    const std::vector<int> nodes = indices_of(source.attempt, "system-", ".csv");
    for (int node : nodes) {
      const Path file = source.attempt.system(node);
      const auto table = record::read_metrics(file);
      if (!table) {
        facts.notes.emplace_back(table.error().message());
        continue;
      }
      note_damage(facts, file, table->damaged, table->truncated);
      charts.add(source, *table, node, nodes.size() > 1);
    }
  }
  facts.system = charts.finish();
}

}  // namespace stoker::report
