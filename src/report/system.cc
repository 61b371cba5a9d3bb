#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/file.h"
#include "record/metrics.h"
#include "report/sources.h"

namespace stoker::report {

namespace {

/// A chart and which columns of the system files belong to it.
struct ChartRule {
  std::string_view title;
  std::string_view unit;
  std::string_view column;  ///< the end of the column's name, behind "rankN." or "gpuN.", or all of it
  std::string_view label;   ///< "" names the series by what stands before the '.'
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
};

std::string series_name(const ChartRule& rule, std::string_view column, int node, bool has_nodes) {
  std::string name(rule.label.empty() ? column.substr(0, column.find('.')) : rule.label);
  for (std::string_view word : {"rank", "gpu"}) {
    if (name.starts_with(word)) name.insert(word.size(), " ");
  }
  if (has_nodes && !name.starts_with("rank")) name += format(" of node {}", node);
  return name;
}

/// At most `most` points: means of neighbours, which keep the area.
void thin(Series& series, std::size_t most) {
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
  void take(const AttemptSource& source, const record::MetricTable& table, int node, bool has_nodes) {
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
        thin(series, kPoints);
        if (!series.x.empty() && chart.series.size() < kMostSeries) chart.series.push_back(std::move(series));
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

/// Without the escape sequences by which programs colour a terminal.
std::string without_colours(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
      continue;
    }
    plain += line[i] == '\t' ? ' ' : line[i];
  }
  return plain;
}

/// The last `most` bytes of a regular file, from the beginning of a line on.
Result<std::string> read_end(const Path& path, std::uint64_t most) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return not_found("{}: no regular file", path.string());
  OK_OR_RETURN(file, File::open_read(path));
  OK_OR_RETURN(size, file.size());
  const std::uint64_t begin = size - std::min(size, most);
  std::string end(size - begin, '\0');
  RETURN_IF_ERROR(file.read_at(begin, std::as_writable_bytes(std::span(end.data(), end.size()))));
  if (begin > 0) end.erase(0, end.find('\n') + 1);
  return end;
}

std::optional<LogTail> read_tail(const record::Attempt& attempt, int rank) {
  constexpr std::size_t kLines = 20;
  constexpr std::size_t kLongest = 400;
  constexpr std::uint64_t kEnd = 256u << 10;
  LogTail tail{attempt.number(), rank, attempt.log(rank).filename().string(), {}};
  const auto end = read_end(attempt.log(rank), kEnd);
  if (!end) return std::nullopt;
  for (std::string_view line : split(trim(*end), '\n')) {
    // A progress bar rewrites its line: what stood last is what was seen.
    while (line.ends_with('\r')) line.remove_suffix(1);
    if (const std::size_t rewritten = line.rfind('\r'); rewritten != std::string_view::npos) {
      line.remove_prefix(rewritten + 1);
    }
    tail.lines.push_back(printable(without_colours(line.substr(0, kLongest))));
  }
  if (tail.lines.size() > kLines) tail.lines.erase(tail.lines.begin(), tail.lines.end() - kLines);
  if (tail.lines.size() == 1 && tail.lines[0].empty()) return std::nullopt;
  return tail;
}

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
      charts.take(source, *table, node, nodes.size() > 1);
    }
  }
  facts.system = charts.finish();
}

void read_logs(const record::Attempt& last, RunFacts& facts) {
  std::vector<int> ranks;
  if (facts.state.first_rank) ranks.push_back(*facts.state.first_rank);
  if (ranks.empty() || ranks.front() != 0) ranks.push_back(0);
  for (int rank : ranks) {
    auto tail = read_tail(last, rank);
    // Ranks that fail alike say the same: once is enough.
    if (tail && (facts.logs.empty() || facts.logs.back().lines != tail->lines))
      facts.logs.push_back(*std::move(tail));
  }
}

}  // namespace stoker::report
