#include "report/overview.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/secrets.h"
#include "report/sentence.h"

namespace stoker::report {
namespace {

constexpr std::size_t kMostSettings = 8;
constexpr std::size_t kMostResults = 5;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Settings = std::vector<std::pair<std::string, std::string>>;

// A run or a task before the columns are known.
struct OverviewItem {
  OverviewRow row;
  Settings settings;
  std::vector<std::pair<std::string, double>> results;
  std::vector<Series> curves;
};

const std::string* find(const Settings& settings, const std::string& key) {
  for (const auto& [name, value] : settings) {
    if (name == key) return &value;
  }
  return nullptr;
}

// The keys whose values are not the same in all items, in the order of their first appearance.
std::vector<std::string> differing_keys(const std::vector<OverviewItem>& items) {
  std::vector<std::string> keys;
  std::map<std::string, std::size_t> counts;
  for (const OverviewItem& item : items) {
    for (const auto& [key, value] : item.settings) {
      if (++counts[key] == 1) keys.push_back(key);
    }
  }
  std::erase_if(keys, [&](const std::string& key) {
    if (counts[key] < items.size()) return false;
    const std::string* first = find(items[0].settings, key);
    return std::all_of(items.begin(), items.end(),
                       [&](const OverviewItem& item) { return *find(item.settings, key) == *first; });
  });
  // The command usually differs because it contains the other settings.
  const auto is_command = [](const std::string& key) { return key == "run" || key.starts_with("run."); };
  if (!std::all_of(keys.begin(), keys.end(), is_command)) std::erase_if(keys, is_command);
  return keys;
}

bool is_speed(std::string_view name) { return name.ends_with(", s"); }

// The results that most runs have and whose good values are known first: the first one ranks the runs.
std::vector<OverviewResult> choose_results(const std::vector<OverviewItem>& items) {
  struct Candidate {
    OverviewResult result;
    std::size_t count = 0;
    std::size_t place = 0;
  };
  std::vector<Candidate> candidates;
  for (const OverviewItem& item : items) {
    for (const auto& [name, value] : item.results) {
      if (is_speed(name)) continue;
      auto found = std::find_if(candidates.begin(), candidates.end(),
                                [&](const Candidate& each) { return each.result.name == name; });
      if (found == candidates.end())
        found = candidates.insert(candidates.end(), {{name, better_of(name)}, 0, candidates.size()});
      ++found->count;
    }
  }
  const auto rank = [](const Candidate& each) {
    const std::string name = to_lower(each.result.name);
    if (name == "samples/s") return 3;
    if (each.result.better == Better::unknown) return 2;
    const bool is_validation =
        name.find("val") != std::string::npos || name.find("test") != std::string::npos;
    return is_validation && each.result.better == Better::higher ? 0 : 1;
  };
  std::stable_sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
    return std::tuple(rank(a), b.count, a.place) < std::tuple(rank(b), a.count, b.place);
  });
  std::vector<OverviewResult> results;
  for (const Candidate& each : candidates) {
    if (results.size() < kMostResults) results.push_back(each.result);
  }
  return results;
}

template <typename Point>
void add_curve(std::string name, const std::vector<Point>& points, double Point::* value,
               std::vector<Series>& curves) {
  Series series{std::move(name), {}, {}};
  for (const Point& point : points) {
    if (!std::isfinite(point.*value)) continue;
    series.x.push_back(static_cast<double>(point.step));
    series.y.push_back(point.*value);
  }
  if (!series.x.empty()) curves.push_back(std::move(series));
}

void add_run(const RunFacts& run, OverviewItem& item) {
  item.curves = curves_of_run(run);
  item.results = results_of(run);
}

// NaN is worse than everything.
bool is_better(double a, double b, Better better) {
  if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  return better == Better::lower ? a < b : a > b;
}

Overview make_overview(std::string what, std::vector<OverviewItem> items) {
  Overview overview{
      .what = std::move(what), .settings = {}, .results = choose_results(items), .curves = {}, .rows = {}};
  overview.settings = differing_keys(items);
  if (overview.settings.size() > kMostSettings) overview.settings.resize(kMostSettings);
  for (const OverviewItem& item : items) {
    for (const Series& curve : item.curves) {
      if (std::find(overview.curves.begin(), overview.curves.end(), curve.name) == overview.curves.end())
        overview.curves.push_back(curve.name);
    }
  }
  for (OverviewItem& item : items) {
    for (const std::string& key : overview.settings) {
      const std::string* value = find(item.settings, key);
      item.row.settings.push_back(value == nullptr ? "" : hide_setting(key, *value));
    }
    for (const OverviewResult& result : overview.results) {
      const auto found = std::find_if(item.results.begin(), item.results.end(),
                                      [&](const auto& each) { return each.first == result.name; });
      item.row.results.push_back(found == item.results.end() ? kNaN : found->second);
    }
    for (const std::string& name : overview.curves) {
      const auto found = std::find_if(item.curves.begin(), item.curves.end(),
                                      [&](const Series& each) { return each.name == name; });
      item.row.curves.push_back(found == item.curves.end() ? Series{name, {}, {}} : std::move(*found));
    }
    overview.rows.push_back(std::move(item.row));
  }
  if (!overview.results.empty() && overview.results[0].better != Better::unknown) {
    std::stable_sort(overview.rows.begin(), overview.rows.end(),
                     [&](const OverviewRow& a, const OverviewRow& b) {
                       return is_better(a.results[0], b.results[0], overview.results[0].better);
                     });
  }
  return overview;
}

}  // namespace

std::vector<Series> curves_of_run(const RunFacts& run) {
  std::vector<Series> curves;
  add_curve("validation top-1", run.learning.epochs, &EpochPoint::val_top1, curves);
  add_curve("validation loss", run.learning.epochs, &EpochPoint::val_loss, curves);
  add_curve("training loss", run.learning.steps, &StepPoint::loss, curves);
  for (const MetricCurve& curve : run.metrics)
    add_curve(curve.name, curve.points, &MetricPoint::mean, curves);
  return curves;
}

Overview overview_of_runs(std::span<const RunFacts> runs) {
  std::vector<OverviewItem> items;
  for (const RunFacts& run : runs) {
    OverviewItem item;
    const std::string letters = run.id.substr(run.id.rfind('_') + 1);
    item.row.name = printable(run.description.name.empty() ? run.id : run.description.name + " " + letters);
    item.row.state = run.state_word;
    item.row.reason = printable(run.state.reason);
    item.row.seconds = run.running_s;
    item.settings = settings_of(run);
    if (item.settings.empty()) {
      for (const auto& [name, value] : run.description.params)
        item.settings.emplace_back("params." + name, value);
    }
    add_run(run, item);
    items.push_back(std::move(item));
  }
  return make_overview("run", std::move(items));
}

Overview overview_of_tasks(const RunFacts& array) {
  std::vector<OverviewItem> items;
  for (const TaskFacts& task : array.tasks) {
    OverviewItem item;
    item.row.name = format("task {}", task.number);
    item.row.state = task.state;
    item.row.reason = printable(task.reason);
    item.row.seconds = task.seconds();
    item.settings = task.values;
    add_run(task.run, item);
    items.push_back(std::move(item));
  }
  return make_overview("task", std::move(items));
}

std::string count_text(const Overview& overview) {
  std::vector<std::pair<std::string, std::size_t>> states;
  for (const OverviewRow& row : overview.rows) {
    const auto found =
        std::find_if(states.begin(), states.end(), [&](const auto& each) { return each.first == row.state; });
    if (found == states.end()) {
      states.emplace_back(row.state, 1);
    } else {
      ++found->second;
    }
  }
  std::stable_sort(states.begin(), states.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> parts;
  for (const auto& [state, count] : states) parts.push_back(format("{} {}", count, state));
  return format("{}: {}", counted(overview.rows.size(), overview.what), join(parts, ", "));
}

Table overview_table(const Overview& overview, std::size_t most) {
  const bool is_task = overview.what == "task";
  Table table{.title = is_task ? "Tasks" : "Runs",
              .source = is_task ? "array.json, tasks/*" : "the run folders",
              .columns = {{overview.what}},
              .rows = {}};
  if (!overview.results.empty() && overview.results[0].better != Better::unknown)
    table.source += format("; best {} first", printable(overview.results[0].name));
  if (overview.rows.size() > most)
    table.source += format("; {} of {}: the rest with --format json", most, overview.rows.size());
  for (const std::string& name : overview.settings)
    table.columns.push_back({.name = printable(name), .is_number = true});
  for (const OverviewResult& result : overview.results)
    table.columns.push_back({.name = printable(result.name), .is_number = true});
  table.columns.push_back({.name = "running", .is_number = true});
  table.columns.push_back({.name = "state"});
  for (std::size_t r = 0; r < std::min(most, overview.rows.size()); ++r) {
    const OverviewRow& row = overview.rows[r];
    std::vector<std::string> cells = {row.name};
    for (const std::string& value : row.settings) cells.push_back(value.empty() ? "-" : printable(value));
    for (double value : row.results) cells.push_back(significant(value));
    cells.push_back(row.seconds > 0 ? seconds_text(row.seconds) : "-");
    cells.push_back(row.reason.empty() || row.state == "done" ? row.state
                                                              : format("{}: {}", row.state, row.reason));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace stoker::report
