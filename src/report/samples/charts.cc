#include "report/samples/charts.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stoker::report {

namespace {

/// A chart and which columns of the system files belong to it.
struct ChartRule {
  std::string_view title;
  std::string_view unit;
  /// Suffix of the column name after "rankN" or "gpuN", the full name, or with a '*' what is around a name.
  std::string_view column;
  std::string_view label;  ///< "": the part before the '.' is the series name
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
    {"Use of the job's cores", "%", "job_cpu_percent", "cores"},
    {"Network, received", "bytes/s", "net*.received_bytes_per_s", ""},
    {"Network, sent", "bytes/s", "net*.sent_bytes_per_s", ""},
    {"InfiniBand, received", "bytes/s", "ib*.received_bytes_per_s", ""},
    {"InfiniBand, sent", "bytes/s", "ib*.sent_bytes_per_s", ""},
    {"Shared filesystems, read", "bytes/s", "shared.read_bytes_per_s", "shared"},
    {"Shared filesystems, written", "bytes/s", "shared.write_bytes_per_s", "shared"},
    {"Local disks, read", "bytes/s", "local.read_bytes_per_s", "local"},
    {"Local disks, written", "bytes/s", "local.write_bytes_per_s", "local"},
    {"GPU busy", "%", ".busy_percent", ""},
    {"GPU memory", "bytes", ".memory_bytes", ""},
    {"GPU power", "W", ".power_w", ""},
    {"GPU clock", "MHz", ".sm_clock_mhz", ""},
    {"GPU temperature", "°C", ".temperature_c", ""},
};

/// The prefix and suffix of a rule with a '*': "net." and ".sent_bytes_per_s" of "net*.sent_bytes_per_s".
std::pair<std::string, std::string> around_star(std::string_view column) {
  const std::size_t star = column.find('*');
  return {std::string(column.substr(0, star)) + ".", std::string(column.substr(star + 1))};
}

bool is_indexed(std::string_view column) {
  const std::string_view stem = column.substr(0, column.find('.'));
  for (std::string_view word : {"rank", "gpu"}) {
    std::int64_t index = 0;
    if (stem.starts_with(word) && parse_number(stem.substr(word.size()), &index)) return true;
  }
  return false;
}

bool fits(const ChartRule& rule, std::string_view column) {
  if (rule.column.starts_with('.')) return column.ends_with(rule.column) && is_indexed(column);
  if (rule.column.find('*') == std::string_view::npos) return column == rule.column;
  const auto [prefix, suffix] = around_star(rule.column);
  return column.size() > prefix.size() + suffix.size() && column.starts_with(prefix) &&
         column.ends_with(suffix);
}

std::string series_name(const ChartRule& rule, std::string_view column, int node, bool has_nodes) {
  std::string name(rule.label.empty() ? column.substr(0, column.find('.')) : rule.label);
  if (rule.column.find('*') != std::string_view::npos) {
    const auto [prefix, suffix] = around_star(rule.column);
    name = column.substr(prefix.size(), column.size() - prefix.size() - suffix.size());
  }
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

/// The lowest, mean and highest value of many series, at 300 times.
std::vector<Series> envelope_of(const std::vector<Series>& all) {
  constexpr std::size_t kBins = 300;
  double first = std::numeric_limits<double>::infinity();
  double last = -first;
  for (const Series& series : all) {
    for (const double x : series.x) {
      first = std::min(first, x);
      last = std::max(last, x);
    }
  }
  struct Bin {
    double lowest = std::numeric_limits<double>::infinity();
    double highest = -std::numeric_limits<double>::infinity();
    double sum = 0;
    std::size_t count = 0;
  };
  std::vector<Bin> bins(kBins);
  const double width = (last - first) / kBins;
  for (const Series& series : all) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.y[i])) continue;
      const auto at = width > 0 ? static_cast<std::size_t>((series.x[i] - first) / width) : 0;
      Bin& bin = bins[std::min(at, kBins - 1)];
      bin.lowest = std::min(bin.lowest, series.y[i]);
      bin.highest = std::max(bin.highest, series.y[i]);
      bin.sum += series.y[i];
      ++bin.count;
    }
  }
  std::vector<Series> lines = {{"lowest", {}, {}}, {"mean", {}, {}}, {"highest", {}, {}}};
  for (std::size_t b = 0; b < kBins; ++b) {
    if (bins[b].count == 0) continue;
    const double values[] = {bins[b].lowest, bins[b].sum / static_cast<double>(bins[b].count),
                             bins[b].highest};
    for (std::size_t i = 0; i < lines.size(); ++i) {
      lines[i].x.push_back(first + (static_cast<double>(b) + 0.5) * width);
      lines[i].y.push_back(values[i]);
    }
  }
  return lines;
}

}  // namespace

SystemCharts::SystemCharts() : series_(std::size(kRules)), order_(std::size(kRules)) {}

void SystemCharts::add(const AttemptSource& source, const record::MetricTable& table, int node,
                       bool has_nodes) {
  const auto time = table.column("time");
  if (time.empty()) return;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const std::string& column = table.columns[c];
    for (std::size_t r = 0; r < std::size(kRules); ++r) {
      if (fits(kRules[r], column))
        append(r, series_name(kRules[r], column, node, has_nodes), source, time, table.values[c]);
    }
  }
  const auto total = table.column("host_memory_total_bytes");
  const auto limit = table.column("cgroup_memory_limit_bytes");
  if (!total.empty()) note_limit("host_memory_bytes", total.back());
  if (!limit.empty()) note_limit("cgroup_memory_bytes", limit.back());
}

std::vector<SystemChart> SystemCharts::finish() {
  constexpr std::size_t kPoints = 300;
  constexpr std::size_t kMostSeries = 16;
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
      if (!series.x.empty()) chart.series.push_back(std::move(series));
    }
    if (chart.series.size() > kMostSeries) {
      chart.summarized = chart.series.size();
      chart.series = envelope_of(chart.series);
    }
    if (!chart.series.empty()) charts.push_back(std::move(chart));
  }
  return charts;
}

// Long files are thinned at once: many nodes would not fit in memory.
void SystemCharts::append(std::size_t rule, const std::string& name, const AttemptSource& source,
                          std::span<const double> time, std::span<const double> values) {
  constexpr std::size_t kMostPoints = 1200;
  constexpr double kMost = 1e18;  // files may be damaged
  if (!series_[rule].contains(name)) order_[rule].push_back(name);
  Series& series = series_[rule][name];
  if (!series.x.empty() && source.before > series.x.back()) {  // a gap between attempts
    series.x.push_back(source.before);
    series.y.push_back(std::numeric_limits<double>::quiet_NaN());
  }
  Series own;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!(std::abs(values[i]) < kMost) || !std::isfinite(time[i])) continue;
    own.x.push_back(source.run_time(time[i]));
    own.y.push_back(values[i]);
  }
  downsample(own, kMostPoints);
  series.x.insert(series.x.end(), own.x.begin(), own.x.end());
  series.y.insert(series.y.end(), own.y.begin(), own.y.end());
}

void SystemCharts::note_limit(const std::string& column, double limit) {
  if (std::isfinite(limit)) limits_[column] = std::max(limits_[column], limit);
}

}  // namespace stoker::report
