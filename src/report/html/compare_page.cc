#include "report/html/compare_page.h"

#include <algorithm>
#include <set>

#include "base/version.h"
#include "report/compare/print.h"
#include "report/html/chart.h"
#include "report/html/frame.h"
#include "report/html/markup.h"
#include "report/html/style.h"
#include "report/overview.h"

namespace stoker::report {
namespace {

constexpr std::string_view kPageStyles[] = {html::kStyle};
constexpr std::string_view kPageScripts[] = {html::kScript};
constexpr std::size_t kMostComparedCharts = 24;
constexpr std::size_t kMostRunsOfGroup = 32;
constexpr std::size_t kPointsOfLine = 200;

using RunCurves = std::vector<std::vector<Series>>;

RunCurves curves_of_group(std::span<const RunFacts> runs) {
  RunCurves curves;
  for (const RunFacts& run : runs.first(std::min(runs.size(), kMostRunsOfGroup)))
    curves.push_back(curves_of_run(run));
  return curves;
}

// The first run of the group is in the legend, its other runs are thin.
void add_group(const RunCurves& runs, const std::string& curve, const std::string& name,
               const std::string& color, html::Chart& chart) {
  std::vector<html::Line> lines;
  for (const std::vector<Series>& run : runs) {
    const auto found = std::ranges::find(run, curve, &Series::name);
    if (found == run.end()) continue;
    html::Line line{name, color, found->x, found->y, !lines.empty(), false};
    line.has_dots = !line.is_faint && line.x.size() < 30;
    html::downsample(line.x, line.y, kPointsOfLine);
    lines.push_back(std::move(line));
  }
  chart.lines.insert(chart.lines.end(), lines.rbegin(), lines.rend());
}

std::string curves_section(std::span<const RunFacts> before, std::span<const RunFacts> after) {
  const RunCurves a = curves_of_group(before);
  const RunCurves b = curves_of_group(after);
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const RunCurves* group : {&a, &b}) {
    for (const std::vector<Series>& run : *group) {
      for (const Series& series : run) {
        if (seen.insert(series.name).second) names.push_back(series.name);
      }
    }
  }
  std::string charts;
  std::size_t drawn = 0;
  for (const std::string& name : names) {
    if (drawn == kMostComparedCharts) break;
    html::Chart chart;
    chart.title = printable(name);
    chart.source = "the runs' metrics";
    chart.x_name = "step";
    add_group(a, name, "A", "s0", chart);
    add_group(b, name, "B", "s1", chart);
    const std::string svg = html::draw(chart);
    charts += svg;
    drawn += svg.empty() ? 0 : 1;
  }
  if (charts.empty()) return "";
  charts = "<div class=\"charts\">" + charts + "</div>";
  const auto note = [&](const std::string& text) { charts += html::element("p", "source", text); };
  if (before.size() > 1 || after.size() > 1) note("The further runs of a group are thin.");
  if (std::max(before.size(), after.size()) > kMostRunsOfGroup)
    note(format("The first {} runs of each group are drawn.", kMostRunsOfGroup));
  if (drawn == kMostComparedCharts) note(format("The first {} metrics are drawn.", drawn));
  return html::section("Curves", "", charts);
}

std::string table_section(const Table& table) {
  return html::section(table.title, table.source, html::table_html(table));
}

}  // namespace

std::string compare_page(const RunComparison& comparison, std::span<const RunFacts> before,
                         std::span<const RunFacts> after) {
  const std::string headline = comparison_headline(comparison);
  std::string out = html::page_head(headline, kPageStyles, kPageScripts);
  out +=
      "<main>\n<header>" + html::element("p", "over", "Stoker compare") + html::element("h1", "", headline);
  out += html::element("p", "lede", "A: " + printable(join(comparison.before, ", ")));
  out += html::element("p", "lede", "B: " + printable(join(comparison.after, ", "))) + "</header>\n";
  std::string notes;
  for (const std::string& note : comparison.notes) notes += html::element("p", "", printable(note));
  out += html::section("Notes", "", notes);
  out += table_section(compared_results_table(comparison));
  const Table differences = differences_table(comparison);
  out += differences.rows.empty()
             ? html::section(differences.title, "", html::element("p", "", std::string(kNoDifferences)))
             : table_section(differences);
  out += curves_section(before, after);
  out += html::element("footer", "", format("Created by stoker {}", version())) + "\n</main>\n";
  return out + html::page_end(kPageScripts);
}

}  // namespace stoker::report
