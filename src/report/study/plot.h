// Scatter plots, steps and shaded areas as inline SVG, in the form of the charts of html/chart.h: positions
// across are stretched, text is not. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/study/scale.h"

namespace stoker::report::study {

/// A place in a plot as fractions of its axes: (0, 0) is at the bottom left.
struct PlotPlace {
  double x = 0;
  double y = 0;
};

/// Dots, or a line through places; NaN breaks the line.
struct PlotMarks {
  std::string css_class;
  std::vector<PlotPlace> at;
};

/// Rectangles of one shade.
struct PlotShade {
  double opacity = 1;
  std::vector<std::pair<PlotPlace, PlotPlace>> corners;  ///< bottom left and top right
};

/// A text that appears near a place.
struct PlotHint {
  PlotPlace at;
  std::string text;
};

struct Plot {
  std::string title;
  std::string note;  ///< below the plot
  Scale x = Scale::numbers(0, 1, Scale::Spacing::linear);
  Scale y = Scale::numbers(0, 1, Scale::Spacing::linear);
  double height = 200;  ///< in pixels
  std::vector<PlotShade> shades;
  std::vector<PlotMarks> lines;
  std::vector<PlotMarks> dots;
  std::vector<PlotHint> hints;
  std::vector<std::pair<std::string, std::string>> legend;  ///< class and text
};

/// A figure with caption, legend and SVG.
std::string draw_plot(const Plot& plot);

/// The classes "dots", "pruned", "band" and "weight", beside the classes of html/style.h.
extern const std::string_view kPlotStyle;
/// Shows hints. Without it nothing is missing.
extern const std::string_view kPlotScript;

}  // namespace stoker::report::study
