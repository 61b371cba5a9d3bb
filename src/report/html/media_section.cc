#include "report/html/media_section.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/encode.h"
#include "base/language/counted.h"
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "report/sentence.h"
#include "report/tables.h"

namespace stoker::report::html {

namespace {

// The other histograms are in the table.
constexpr std::size_t kHistogramCharts = 24;
constexpr double kDistributionHeight = 110;
constexpr double kCountsHeight = 60;
constexpr std::uint32_t kSmallImage = 96;  // pixels: magnified, without blurring

// `task`: "task 3, " of an array.
std::string picture(const ImageSeries& series, const LoggedImageFacts& image, const std::string& task) {
  const std::string step = format("{}step {}", task, image.step);
  const bool is_small = std::max(image.width, image.height) <= kSmallImage;
  return format(
      "<div><img{} alt=\"{}\" width=\"{}\" height=\"{}\" src=\"data:image/{};base64,{}\"><p "
      "class=\"source\">{}</p></div>",
      is_small ? " class=\"magnified\"" : "", escape_html(printable(series.name) + ", " + step), image.width,
      image.height, image.type, base64(std::as_bytes(std::span(image.bytes))), step);
}

std::string pictures(const ImageSeries& series) {
  std::string shown;
  for (const LoggedImageFacts& image : series.shown) {
    if (!image.bytes.empty()) shown += picture(series, image, "");
  }
  if (shown.empty()) return "";
  return format("<figure><figcaption><b>{}</b>{}</figcaption><div class=\"pictures\">{}</div></figure>\n",
                escape_html(printable(series.name)),
                escape_html(format("{} of {}, rank {}", series.shown.size(),
                                   counted(series.recorded, "image"), series.rank)),
                shown);
}

/// The distribution over the steps.
std::string distribution_chart(const HistogramSeries& series) {
  constexpr std::size_t kPoints = 400;
  Chart chart;
  chart.title = printable(series.name);
  chart.source = format("media-*.jsonl, rank {}", series.rank);
  chart.x_name = "step";
  chart.height = kDistributionHeight;
  const auto add = [&](std::string_view name, double DistributionPoint::* value, std::string_view css_class,
                       bool is_faint) {
    Line line{std::string(name), std::string(css_class), {}, {}, is_faint, false};
    for (const DistributionPoint& point : series.points) {
      if (point.count == 0) continue;
      line.x.push_back(static_cast<double>(point.step));
      line.y.push_back(point.*value);
    }
    downsample(line.x, line.y, kPoints);
    chart.lines.push_back(std::move(line));
  };
  add("lowest and highest", &DistributionPoint::lowest, "s7", false);
  add("highest", &DistributionPoint::highest, "s7", true);
  add("quarters", &DistributionPoint::quarter, "s1", false);
  add("three quarters", &DistributionPoint::three_quarters, "s1", true);
  add("median", &DistributionPoint::median, "s0", false);
  return draw(chart);
}

/// The last histogram, with its range below.
std::string counts_chart(const HistogramSeries& series, const std::string& task) {
  const std::vector<std::uint64_t>& counts = series.last.counts;
  const std::uint64_t most = counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
  if (most == 0) return "";
  std::string bars;
  const double width = 100.0 / static_cast<double>(counts.size());
  for (std::size_t bin = 0; bin < counts.size(); ++bin) {
    if (counts[bin] == 0) continue;
    const double height = kCountsHeight * static_cast<double>(counts[bin]) / static_cast<double>(most);
    bars += format(
        "<rect x=\"{:.3f}%\" y=\"{:.2f}\" width=\"{:.3f}%\" height=\"{:.2f}\"><title>{} to {}: "
        "{}</title></rect>",
        static_cast<double>(bin) * width, kCountsHeight - height, width, height,
        significant(series.last.edge(bin)), significant(series.last.edge(bin + 1)), grouped(counts[bin]));
  }
  const DistributionPoint& last = series.points.back();
  return format(
      "<figure><figcaption><b>{}</b>{}</figcaption><svg class=\"counts\" role=\"img\" aria-label=\"{}\" "
      "width=\"100%\" height=\"{}\">{}</svg><p class=\"range\"><span>{}</span><span>{}</span></p></figure>\n",
      escape_html(printable(series.name)),
      escape_html(format("{}step {}, {}", task, last.step, counted(last.count, "value"))),
      escape_html(format("{}histogram of {}", task, printable(series.name))), kCountsHeight, bars,
      significant(series.last.lowest), significant(series.last.highest));
}

std::string charts_of_run(const RunFacts& facts) {
  std::string charts;
  for (std::size_t i = 0; i < std::min(facts.histograms.size(), kHistogramCharts); ++i)
    charts += distribution_chart(facts.histograms[i]) + counts_chart(facts.histograms[i], "");
  return charts;
}

std::string task_label(const TaskFacts& task) { return format("task {}, ", task.number); }

/// The last image of each task, the same name side by side.
std::string pictures_of_tasks(const RunFacts& array) {
  struct Shown {
    std::string pictures;
    std::size_t count = 0;
    std::size_t recorded = 0;
  };
  std::map<std::string, Shown> by_name;
  for (const TaskFacts& task : array.tasks) {
    for (const ImageSeries& series : task.run.images) {
      Shown& shown = by_name[series.name];
      ++shown.recorded;
      for (const LoggedImageFacts& image : series.shown) {
        if (image.bytes.empty()) continue;
        shown.pictures += picture(series, image, task_label(task));
        ++shown.count;
      }
    }
  }
  std::string figures;
  for (const auto& [name, shown] : by_name) {
    if (shown.count == 0) continue;
    figures +=
        format("<figure><figcaption><b>{}</b>{}</figcaption><div class=\"pictures\">{}</div></figure>\n",
               escape_html(printable(name)),
               escape_html(format("the last one of {} of {}", shown.count, counted(shown.recorded, "task"))),
               shown.pictures);
  }
  return figures;
}

/// The last histogram of each task, the same name side by side.
std::string charts_of_tasks(const RunFacts& array) {
  std::map<std::string, std::vector<std::pair<const TaskFacts*, const HistogramSeries*>>> by_name;
  for (const TaskFacts& task : array.tasks) {
    for (const HistogramSeries& series : task.run.histograms)
      by_name[series.name].emplace_back(&task, &series);
  }
  std::string charts;
  std::size_t count = 0;
  for (const auto& [name, tasks] : by_name) {
    for (const auto& [task, series] : tasks) {
      if (++count <= kHistogramCharts) charts += counts_chart(*series, task_label(*task));
    }
  }
  return charts;
}

}  // namespace

std::string media_section(const RunFacts& facts) {
  std::string body;
  for (const ImageSeries& series : facts.images) body += pictures(series);
  body += pictures_of_tasks(facts);
  const std::string charts = charts_of_run(facts) + charts_of_tasks(facts);
  if (!charts.empty()) body += "<div class=\"charts small\">" + charts + "</div>";
  const std::string images = table_html(images_table(facts));
  const std::string histograms = table_html(histograms_table(facts));
  if (!images.empty()) body += "<h3>Images</h3>" + images;
  if (!histograms.empty()) body += "<h3>Histograms</h3>" + histograms;
  return section("Images and histograms", "media-*.jsonl of each attempt", body);
}

}  // namespace stoker::report::html
