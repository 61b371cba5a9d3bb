#include "report/html/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/encode.h"
#include "report/html/markup.h"
#include "report/sentence.h"
#include "report/tables.h"
#include "stoker/bytes.h"
#include "stoker/text.h"

namespace stoker::report::html {

namespace {

constexpr double kTop = 18;       // space for the highest label
constexpr double kBottom = 22;    // space for the labels of x
constexpr double kAcross = 1000;  // width of the stretched viewBox

/// The range of an axis and its tick positions.
struct Axis {
  double low = 0;
  double high = 1;
  std::vector<double> ticks;

  double fraction(double value) const { return (value - low) / (high - low); }
};

/// 1, 2 or 5 times a power of ten; for times, clock units.
double nice_step(double raw, AxisUnit unit) {
  if (unit == AxisUnit::seconds && raw > 7.5) {
    constexpr double kSteps[] = {10,   15,   30,   60,    120,   300,   600,  900,
                                 1800, 3600, 7200, 14400, 21600, 43200, 86400};
    for (double step : kSteps) {
      if (raw < 1.4 * step) return step;
    }
  }
  const double power = std::pow(10, std::floor(std::log10(raw)));
  const double digit = raw / power;
  return power * (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10);
}

std::vector<double> nice_ticks(double low, double high, int wanted, AxisUnit unit) {
  const double step = nice_step((high - low) / wanted, unit);
  std::vector<double> ticks;
  for (double tick = std::ceil(low / step - 1e-9) * step; tick <= high + step * 1e-9 && ticks.size() < 12;
       tick += step) {
    ticks.push_back(std::fabs(tick) < step * 1e-9 ? 0 : tick);
  }
  return ticks;
}

void widen(double value, double& low, double& high) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

Axis x_axis(const Chart& chart) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const Line& line : chart.lines) {
    for (double x : line.x) widen(x, low, high);
  }
  Axis axis{low, high, {}};
  axis.ticks = nice_ticks(low, high, 4, chart.x_unit);
  return axis;
}

Axis y_axis(const Chart& chart) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const Line& line : chart.lines) {
    for (double y : line.y) widen(y, low, high);
  }
  if (chart.limit > 0 && high > 0.4 * chart.limit) widen(chart.limit, low, high);
  low = std::min(low, 0.0);
  if (high <= low) high = low + (low == 0 ? 1 : std::fabs(low) * 0.1);
  if (chart.y_unit == AxisUnit::percent && high > 0.85 && high <= 1) high = 1;
  Axis axis{low, high, nice_ticks(low, high, chart.height < 150 ? 2 : 3, chart.y_unit)};
  return axis;
}

/// "3 GB", "1.5 kB": round numbers as ticks are.
std::string bytes_label(double value) {
  constexpr std::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  while (std::fabs(value) >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return value == 0 ? "0" : format("{:.3g} {}", value, kUnits[unit]);
}

/// "30 s", "2 min", "1 h 30", "2 d".
std::string seconds_label(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  if (value < 60) return format("{:.3g} s", value);
  if (whole < 3600) return whole % 60 == 0 ? format("{} min", whole / 60) : seconds_text(value);
  if (whole % 86400 == 0) return format("{} d", whole / 86400);
  return whole % 3600 == 0 ? format("{} h", whole / 3600)
                           : format("{} h {:02}", whole / 3600, whole % 3600 / 60);
}

std::string label(double value, AxisUnit unit) {
  switch (unit) {
    case AxisUnit::percent:
      return format("{:.{}f} %", 100 * value,
                    std::fabs(value * 100 - std::round(value * 100)) < 1e-6 ? 0 : 1);
    case AxisUnit::bytes:
      return bytes_label(value);
    case AxisUnit::bytes_per_s:
      return value == 0 ? "0" : bytes_label(value) + "/s";
    case AxisUnit::seconds:
      return seconds_label(value);
    case AxisUnit::plain:
      break;
  }
  if (value == std::round(value) && std::fabs(value) < 1e15) {
    return (value < 0 ? "-" : "") + grouped(static_cast<std::uint64_t>(std::fabs(value)));
  }
  return format("{:.4g}", value);
}

double y_pixel(const Chart& chart, const Axis& axis, double y) {
  return kTop + chart.height * (1 - axis.fraction(y));
}

std::string path_of(const Chart& chart, const Line& line, const Axis& x, const Axis& y) {
  std::string path;
  bool is_drawing = false;
  for (std::size_t i = 0; i < line.x.size(); ++i) {
    if (!std::isfinite(line.y[i]) || !std::isfinite(line.x[i])) {
      is_drawing = false;
      continue;
    }
    path += format("{}{:.1f} {:.1f}", is_drawing ? "L" : "M", kAcross * x.fraction(line.x[i]),
                   y_pixel(chart, y, line.y[i]) - kTop);
    is_drawing = true;
  }
  return path;
}

void add_grid(std::string& svg, const Chart& chart, const Axis& x, const Axis& y) {
  for (double tick : y.ticks) {
    const double at = y_pixel(chart, y, tick);
    svg += format("<line class=\"grid\" x1=\"0\" x2=\"100%\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", at, at);
  }
  for (double tick : x.ticks) {
    const double part = x.fraction(tick);
    const char* anchor = part < 0.04 ? "start" : part > 0.93 ? "end" : "middle";
    svg += format("<text class=\"tick\" x=\"{:.2f}%\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", 100 * part,
                  kTop + chart.height + 16, anchor, escape_html(label(tick, chart.x_unit)));
  }
  if (chart.limit > 0 && chart.limit <= y.high) {
    const double at = y_pixel(chart, y, chart.limit);
    svg += format("<line class=\"limit\" x1=\"0\" x2=\"100%\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>", at, at);
  }
}

/// The labels of y, in a separate picture beside the plot, so that no curve crosses them.
std::string y_labels(const Chart& chart, const Axis& y) {
  constexpr double kCharacter = 6.5;  // width in pixels, at most
  std::size_t longest = 0;
  for (double tick : y.ticks) longest = std::max(longest, label(tick, chart.y_unit).size());
  const double width = kCharacter * static_cast<double>(longest) + 6;
  std::string svg = format("<svg class=\"labels\" aria-hidden=\"true\" width=\"{:.0f}\" height=\"{}\">",
                           width, kTop + chart.height + kBottom);
  for (double tick : y.ticks) {
    svg += format("<text class=\"tick\" x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", width - 6,
                  y_pixel(chart, y, tick) + 4, escape_html(label(tick, chart.y_unit)));
  }
  return svg + "</svg>";
}

void add_marks(std::string& svg, const Chart& chart, const Axis& x) {
  for (const ChartMark& mark : chart.marks) {
    const double part = x.fraction(mark.x);
    if (part < 0 || part > 1) continue;
    svg += format("<line class=\"mark\" x1=\"{:.2f}%\" x2=\"{:.2f}%\" y1=\"{}\" y2=\"{}\"/>", 100 * part,
                  100 * part, kTop - 4, kTop + chart.height);
    svg += format("<text class=\"mark\" x=\"{:.2f}%\" y=\"{}\" dx=\"{}\" text-anchor=\"{}\">{}</text>",
                  100 * part, kTop - 7, part > 0.7 ? 4 : -4, part > 0.7 ? "end" : "start",
                  escape_html(mark.text));
  }
}

void add_lines(std::string& svg, const Chart& chart, const Axis& x, const Axis& y) {
  svg += format(
      "<svg y=\"{}\" width=\"100%\" height=\"{}\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" "
      "overflow=\"visible\">",
      kTop, chart.height, kAcross, chart.height);
  for (const Line& line : chart.lines) {
    svg += format("<path class=\"{}{}\" d=\"{}\"/>", line.is_faint ? "faint " : "line ", line.css_class,
                  path_of(chart, line, x, y));
  }
  svg += "</svg>";
  for (const Line& line : chart.lines) {
    if (!line.has_dots) continue;
    for (std::size_t i = 0; i < line.x.size(); ++i) {
      if (!std::isfinite(line.y[i])) continue;
      svg += format("<circle class=\"dot {}\" cx=\"{:.2f}%\" cy=\"{:.1f}\" r=\"3\"/>", line.css_class,
                    100 * x.fraction(line.x[i]), y_pixel(chart, y, line.y[i]));
    }
  }
}

/// Numbers for the hover script, with limited precision.
std::string short_numbers(const std::vector<double>& values) {
  std::string list = "[";
  for (double value : values) {
    if (list.size() > 1) list += ',';
    list += std::isfinite(value) ? format("{:.5g}", value) : std::string("null");
  }
  return list + "]";
}

std::string_view unit_key(AxisUnit unit) {
  constexpr std::string_view kKeys[] = {"", "%", "B", "B/s", "s"};
  return kKeys[static_cast<int>(unit)];
}

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

std::string hover_data(const Chart& chart, const Axis& x) {
  std::string json = format("{{\"a\":{:.10g},\"b\":{:.10g},\"n\":{},\"u\":\"{}\",\"v\":\"{}\",\"l\":[", x.low,
                            x.high, json_text(chart.x_name), unit_key(chart.x_unit), unit_key(chart.y_unit));
  bool is_first = true;
  for (const Line& line : chart.lines) {
    if (line.is_faint) continue;
    json += format("{}{{\"n\":{},\"x\":{},\"y\":{}}}", is_first ? "" : ",", json_text(line.name),
                   short_numbers(line.x), short_numbers(line.y));
    is_first = false;
  }
  return json + "]}";
}

bool can_draw(const Chart& chart, const Axis& x, const Axis& y) {
  const bool has_points = std::any_of(chart.lines.begin(), chart.lines.end(), [](const Line& l) {
    return std::count_if(l.y.begin(), l.y.end(), [](double v) { return std::isfinite(v); }) >= 2;
  });
  return has_points && std::isfinite(x.low) && x.high > x.low && std::isfinite(y.low) &&
         std::isfinite(y.high);
}

}  // namespace

void downsample(std::vector<double>& x, std::vector<double>& y, std::size_t most) {
  if (x.size() <= most) return;
  const std::size_t bin = (x.size() + most - 1) / most;
  std::vector<double> thin_x;
  std::vector<double> thin_y;
  for (std::size_t begin = 0; begin < x.size(); begin += bin) {
    const std::size_t end = std::min(begin + bin, x.size());
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += y[i];
    thin_x.push_back(x[(begin + end) / 2]);
    thin_y.push_back(sum / static_cast<double>(end - begin));
  }
  x = std::move(thin_x);
  y = std::move(thin_y);
}

std::string draw(const Chart& chart) {
  const Axis x = x_axis(chart);
  if (!(x.high > x.low) || !std::isfinite(x.low) || !std::isfinite(x.high)) return "";
  const Axis y = y_axis(chart);
  if (!can_draw(chart, x, y)) return "";
  std::string legend;
  for (const Line& line : chart.lines) {
    if (!line.is_faint)
      legend += format(" <span class=\"key {}\">{}</span>", line.css_class, escape_html(line.name));
  }
  std::string svg = format("<svg class=\"plot\" role=\"img\" aria-label=\"{}\" width=\"100%\" height=\"{}\">",
                           escape_html(chart.title), kTop + chart.height + kBottom);
  add_grid(svg, chart, x, y);
  add_marks(svg, chart, x);
  add_lines(svg, chart, x, y);
  svg += format("<line class=\"cursor\" x1=\"0\" x2=\"0\" y1=\"{}\" y2=\"{}\"/></svg>", kTop,
                kTop + chart.height);
  return format(
      "<figure data-chart=\"{}\"><figcaption><b>{}</b>{}<output></output></figcaption><div "
      "class=\"axes\">{}{}</div><p "
      "class=\"source\">{}</p>"
      "</figure>\n",
      escape_html(hover_data(chart, x)), escape_html(chart.title), legend, svg, y_labels(chart, y),
      escape_html(format("over {}, from {}", chart.x_name == "step" ? "steps" : chart.x_name, chart.source)));
}

std::string draw_bar(const RankTime& time, double longest_s) {
  constexpr double kBar = 22;
  std::string svg = format(
      "<svg class=\"bar\" role=\"img\" aria-label=\"time by part\" width=\"100%\" height=\"{}\">", kBar);
  double begin = 0;
  for (TimePart part : kAllParts) {
    const double width = 100 * time.seconds_in(part) / longest_s;
    if (width <= 0) continue;
    svg += format(
        "<rect class=\"p-{}\" x=\"{:.3f}%\" width=\"{:.3f}%\" height=\"{}\"><title>{}: {}</title></rect>",
        key_of(part), begin, width, kBar, to_text(part), seconds_text(time.seconds_in(part)));
    begin += width;
  }
  return svg + "</svg>";
}

}  // namespace stoker::report::html
