// Line charts and stacked bars as inline SVG that keeps its text at one size from phone to desktop: positions
// across are in percent, down in pixels, and only the lines themselves are stretched. Labels of y are beside
// it. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

#include "report/facts.h"

namespace stoker::report::html {

/// The format of an axis's numbers.
enum class AxisUnit { plain, percent, bytes, bytes_per_s, seconds };

struct Line {
  std::string name;
  std::string css_class;  ///< colour: "s0".."s7"
  std::vector<double> x;
  std::vector<double> y;  ///< nan breaks the line
  bool is_faint = false;  ///< thin, and left out of legend and hovering
  bool has_dots = false;
};

/// A vertical line with a label: "resumed".
struct ChartMark {
  double x = 0;
  std::string text;
};

struct Chart {
  std::string title;
  std::string source;
  AxisUnit x_unit = AxisUnit::plain;
  std::string x_name;  ///< "step", "running time"
  AxisUnit y_unit = AxisUnit::plain;
  double height = 200;  ///< of the plot, in pixels
  double limit = 0;     ///< a horizontal line for full use; 0: none
  std::vector<Line> lines;
  std::vector<ChartMark> marks;
};

/// A figure with caption, legend and SVG; "" when no line has two points.
std::string draw(const Chart& chart);

/// One bar that shows how `time` is made up of `parts`, as long as `longest_s` allows.
std::string draw_bar(const RankTime& time, double longest_s);

/// Reduces the series to at most `most` points, means of neighbours.
void downsample(std::vector<double>& x, std::vector<double>& y, std::size_t most);

}  // namespace stoker::report::html
