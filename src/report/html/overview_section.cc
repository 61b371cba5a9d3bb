#include "report/html/overview_section.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/encode.h"
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "report/sentence.h"

namespace stoker::report::html {
namespace {

constexpr std::size_t kMostRows = 500;
constexpr std::size_t kMostCharts = 12;
constexpr std::size_t kMostLines = 64;
constexpr std::size_t kPoints = 200;
constexpr std::size_t kColors = 8;
constexpr std::size_t kColoredOfMany = 5;
constexpr std::size_t kMostAxes = 6;
constexpr std::size_t kShownName = 16;
constexpr std::size_t kShownValue = 9;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::string curve_chart(const Overview& overview, std::size_t index) {
  Chart chart;
  chart.title = printable(overview.curves[index]);
  chart.source = overview.what == "task" ? "the tasks' metrics" : "the runs' metrics";
  chart.x_name = "step";
  const std::size_t colored = colored_rows(overview);
  // The faint lines first, below the colored ones.
  std::vector<Line> faint;
  std::vector<Line> lines;
  for (std::size_t r = 0; r < std::min(overview.rows.size(), kMostLines); ++r) {
    const Series& series = overview.rows[r].curves[index];
    const bool is_faint = r >= colored;
    Line line{overview.rows[r].name, is_faint ? "s7" : format("s{}", r), series.x, series.y, is_faint, false};
    line.has_dots = !is_faint && series.x.size() < 30;
    downsample(line.x, line.y, kPoints);
    (is_faint ? faint : lines).push_back(std::move(line));
  }
  chart.lines = std::move(faint);
  chart.lines.insert(chart.lines.end(), lines.begin(), lines.end());
  return draw(chart);
}

// A vertical axis of the parallel coordinates.
struct ParallelAxis {
  std::string name;
  std::string low, high;          // labels of its ends
  std::vector<double> fractions;  // by row: 0 at the bottom, 1 at the top; nan if the row has no value
};

ParallelAxis number_axis(std::string name, const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  ParallelAxis axis{std::move(name), format("{:.4g}", low), format("{:.4g}", high), {}};
  // Rates and sizes are chosen by their order of magnitude.
  const bool is_log = low > 0 && high / low >= 50;
  for (double value : values) {
    const double part = is_log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    axis.fractions.push_back(!std::isfinite(value) ? kNaN : high > low ? part : 0.5);
  }
  return axis;
}

ParallelAxis setting_axis(const Overview& overview, std::size_t setting) {
  std::vector<double> numbers;
  bool is_number = true;
  for (const OverviewRow& row : overview.rows) {
    double value = kNaN;
    is_number = is_number && (row.settings[setting].empty() || parse_number(row.settings[setting], &value));
    numbers.push_back(value);
  }
  if (is_number) return number_axis(overview.settings[setting], numbers);
  std::set<std::string> values;
  for (const OverviewRow& row : overview.rows) values.insert(row.settings[setting]);
  ParallelAxis axis{overview.settings[setting], *values.begin(), *values.rbegin(), {}};
  for (const OverviewRow& row : overview.rows) {
    const auto place = std::distance(values.begin(), values.find(row.settings[setting]));
    axis.fractions.push_back(
        values.size() < 2 ? 0.5 : static_cast<double>(place) / static_cast<double>(values.size() - 1));
  }
  return axis;
}

std::string shortened(const std::string& text, std::size_t most) {
  const std::string clean = printable(text);
  if (clean.size() <= most) return clean;
  // The end of a key is more specific than its beginning; no character is cut.
  std::size_t begin = clean.size() - most;
  while (begin < clean.size() && (static_cast<unsigned char>(clean[begin]) & 0xC0u) == 0x80u) ++begin;
  return "…" + clean.substr(begin);
}

constexpr double kNames = 34;  // two rows of names and one of labels above the axes
constexpr double kHeight = 180;
constexpr double kBelow = 20;

std::string axes_svg(const std::vector<ParallelAxis>& axes) {
  std::string svg;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const double at = 100 * static_cast<double>(i) / static_cast<double>(axes.size() - 1);
    const char* anchor = i == 0 ? "start" : i + 1 == axes.size() ? "end" : "middle";
    const auto text = [&](double y, std::string_view css_class, const std::string& label,
                          const std::string& whole) {
      svg += format(
          "<text class=\"{}\" x=\"{:.2f}%\" y=\"{:.0f}\" text-anchor=\"{}\">{}<title>{}</title></text>",
          css_class, at, y, anchor, escape_html(label), escape_html(printable(whole)));
    };
    svg += format("<line class=\"axis\" x1=\"{:.2f}%\" x2=\"{:.2f}%\" y1=\"{}\" y2=\"{}\"/>", at, at,
                  kNames + 16, kNames + 16 + kHeight);
    // Neighbours on different heights do not overlap on a phone.
    text(i % 2 == 0 ? 10 : 24, "name", shortened(axes[i].name, kShownName), axes[i].name);
    text(kNames + 8, "tick", shortened(axes[i].high, kShownValue), axes[i].high);
    text(kNames + 16 + kHeight + 15, "tick", shortened(axes[i].low, kShownValue), axes[i].low);
  }
  return svg;
}

std::string line_svg(const std::vector<ParallelAxis>& axes, std::size_t row, std::string_view css_class) {
  std::string path;
  bool is_drawing = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const double part = axes[i].fractions[row];
    if (!std::isfinite(part)) {
      is_drawing = false;
      continue;
    }
    path +=
        format("{}{:.1f} {:.1f}", is_drawing ? "L" : "M",
               1000 * static_cast<double>(i) / static_cast<double>(axes.size() - 1), kHeight * (1 - part));
    is_drawing = true;
  }
  return format("<path class=\"{}\" d=\"{}\"/>", css_class, path);
}

}  // namespace

std::size_t colored_rows(const Overview& overview) {
  return overview.rows.size() <= kColors ? overview.rows.size() : kColoredOfMany;
}

std::string draw_parallel(const Overview& overview) {
  if (overview.settings.empty() || overview.results.empty()) return "";
  std::vector<double> results;
  for (const OverviewRow& row : overview.rows) results.push_back(row.results[0]);
  if (std::count_if(results.begin(), results.end(), [](double v) { return std::isfinite(v); }) < 3) return "";
  std::vector<ParallelAxis> axes;
  for (std::size_t i = 0; i < std::min(overview.settings.size(), kMostAxes); ++i)
    axes.push_back(setting_axis(overview, i));
  axes.push_back(number_axis(overview.results[0].name, results));
  std::string lines;
  const std::size_t colored = colored_rows(overview);
  // The best ones last, on top.
  for (std::size_t r = std::min(overview.rows.size(), kMostRows); r-- > 0;) {
    if (std::isfinite(results[r]))
      lines += line_svg(axes, r, r < colored ? format("line s{}", r) : std::string("faint s7"));
  }
  return format(
      "<figure class=\"parallel\"><figcaption><b>Settings and {}</b></figcaption>"
      "<svg role=\"img\" aria-label=\"parallel coordinates\" width=\"100%\" height=\"{}\">"
      "<svg y=\"{}\" width=\"100%\" height=\"{}\" viewBox=\"0 0 1000 {}\" preserveAspectRatio=\"none\" "
      "overflow=\"visible\">{}</svg>{}</svg>"
      "<p class=\"source\">One line per {}; each has the same color in the curves</p></figure>\n",
      escape_html(printable(overview.results[0].name)), kNames + 16 + kHeight + kBelow, kNames + 16, kHeight,
      kHeight, lines, axes_svg(axes), overview.what);
}

std::string overview_sections(const Overview& overview) {
  if (overview.rows.empty()) return "";
  const Table table = overview_table(overview, kMostRows);
  std::string charts;
  std::size_t drawn = 0;
  for (std::size_t i = 0; i < overview.curves.size() && drawn < kMostCharts; ++i) {
    const std::string chart = curve_chart(overview, i);
    charts += chart;
    drawn += chart.empty() ? 0 : 1;
  }
  if (!charts.empty()) {
    charts = "<div class=\"charts\">" + charts + "</div>";
    const std::size_t lines = std::min(overview.rows.size(), kMostLines);
    const std::size_t colored = colored_rows(overview);
    if (colored < lines)
      charts +=
          element("p", "source",
                  format("The first {} of the table in color, {} more in gray.", colored, lines - colored));
    if (lines < overview.rows.size())
      charts +=
          element("p", "source", format("{} further ones are not drawn.", overview.rows.size() - lines));
  }
  return section(table.title, table.source, table_html(table)) +
         section("Settings", "", draw_parallel(overview)) + section("Curves", "", charts);
}

}  // namespace stoker::report::html
