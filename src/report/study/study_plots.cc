#include "report/study/study_plots.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/encode.h"
#include "base/enum_names.h"
#include "base/language/counted.h"
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "report/html/overview_section.h"
#include "report/study/plot.h"
#include "sweep/analysis/surface.h"
#include "sweep/results/progress.h"

namespace stoker::report::study {

namespace {

constexpr std::size_t kMostSlices = 12;
constexpr std::size_t kMostCurves = 100;
constexpr std::size_t kCurvePoints = 200;
constexpr std::size_t kMostContours = 2;
constexpr std::size_t kContourDots = 150;
constexpr std::size_t kShades = 8;
constexpr std::size_t kMostParallel = 500;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

const std::string& metric_of(const StudyView& view, std::size_t objective) {
  return view.definition.objectives[objective].metric;
}

Scale value_scale(const StudyView& view, std::size_t objective) {
  std::vector<double> values;
  for (const sweep::StudyTrial* trial : view.complete()) values.push_back(trial->values[objective]);
  return Scale::of_values(values, view.definition.objectives[objective].goal);
}

// " 3 trials are outside the axis, at its end." or "".
std::string outside_note(const StudyView& view, std::size_t objective, const Scale& scale) {
  const auto complete = view.complete();
  const auto outside = static_cast<std::uint64_t>(std::count_if(
      complete.begin(), complete.end(),
      [&](const sweep::StudyTrial* trial) { return !scale.contains(trial->values[objective]); }));
  if (outside == 0) return "";
  return format(" {} outside the axis, at its end.", counted(outside, "trial is", "trials are"));
}

std::string drawn_note(const StudyView& view) {
  if (view.drawn.size() == view.counts.complete) return "";
  return format(" Drawn: {} of {}, the best among them.", grouped(view.drawn.size()),
                counted(view.counts.complete, "complete trial"));
}

std::string value_text(const StudyView& view, const sweep::StudyTrial& trial, std::size_t parameter) {
  const double at = trial.point[parameter];
  const auto* const choices =
      std::get_if<sweep::Choices>(&view.definition.space.parameters()[parameter].domain);
  return choices == nullptr ? four_digits(at) : sweep::to_text(choices->values[static_cast<std::size_t>(at)]);
}

// Choices are spread within their part of the axis, so that equal ones do not hide each other.
double place_of(const Scale& scale, const sweep::StudyTrial& trial, std::size_t parameter) {
  // Mixed as in SplitMix64, because numbers and points may have a pattern in common.
  std::uint64_t bits = (trial.number + 1) * 0x9E3779B97F4A7C15;
  bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9;
  const double spread = static_cast<double>(bits >> 40) / (1 << 24) - 0.5;
  return scale.fraction(trial.point[parameter]) + 0.5 * spread * scale.category_width();
}

// The last dots are drawn on top: the best one.
std::vector<PlotMarks> dots_of(std::vector<PlotPlace> places, std::size_t top) {
  top = std::min(top, places.size());
  const auto first = places.begin() + static_cast<std::ptrdiff_t>(top);
  return {{"s0", {first, places.end()}}, {"best top", {places.begin(), first}}};
}

Plot slice_of(const StudyView& view, std::size_t objective, std::size_t parameter) {
  const sweep::Parameter& declared = view.definition.space.parameters()[parameter];
  Plot plot;
  plot.title = printable(declared.name);
  plot.x = Scale::of(declared);
  plot.y = value_scale(view, objective);
  std::vector<PlotPlace> places;
  for (const sweep::StudyTrial* trial : view.drawn) {
    if (std::isnan(trial->point[parameter])) continue;
    places.push_back({place_of(plot.x, *trial, parameter), plot.y.fraction(trial->values[objective])});
    plot.hints.push_back(
        {places.back(),
         format("trial {}: {}, {} {}", trial->number, printable(value_text(view, *trial, parameter)),
                printable(metric_of(view, objective)), four_digits(trial->values[objective]))});
  }
  const bool has_best = !view.best.empty() && !std::isnan(view.best[0]->point[parameter]);
  const bool is_first = view.definition.objectives.size() == 1;
  plot.dots = dots_of(std::move(places), has_best && is_first ? 1 : 0);
  plot.note = format("{} over {}", printable(metric_of(view, objective)), printable(declared.name));
  if (declared.when) plot.note += format(", where {} has it", printable(declared.when->parameter));
  return plot;
}

// The part of the axis that belongs to a column or row: up to the middle between neighbours.
std::pair<double, double> cell_of(const Scale& scale, const std::vector<double>& at, std::size_t i) {
  const auto middle = [&](std::size_t a, std::size_t b) {
    return (scale.fraction(at[a]) + scale.fraction(at[b])) / 2;
  };
  return {i == 0 ? 0.0 : middle(i - 1, i), i + 1 == at.size() ? 1.0 : middle(i, i + 1)};
}

// The objective at a rank, between its quantiles.
double value_at(const sweep::ObjectiveSurface& surface, double rank) {
  const double place = rank * static_cast<double>(surface.values.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(place), surface.values.size() - 2);
  const double part = place - static_cast<double>(low);
  return surface.values[low] * (1 - part) + surface.values[low + 1] * part;
}

// Neighbours of one shade in a row are one rectangle.
std::vector<PlotShade> shades_of(const sweep::ObjectiveSurface& surface, const Plot& plot, double low,
                                 double high) {
  std::vector<PlotShade> shades(kShades);
  for (std::size_t i = 0; i < kShades; ++i)
    shades[i].opacity = 0.04 + 0.8 * std::pow(1 - static_cast<double>(i) / (kShades - 1), 1.3);
  const auto shade_at = [&](std::size_t row, std::size_t column) {
    const double part = high > low ? (surface.rank(row, column) - low) / (high - low) : 0;
    return std::min(kShades - 1, static_cast<std::size_t>(part * kShades));
  };
  for (std::size_t row = 0; row < surface.y_at.size(); ++row) {
    const auto [bottom, top] = cell_of(plot.y, surface.y_at, row);
    for (std::size_t begin = 0; begin < surface.x_at.size();) {
      const std::size_t shade = shade_at(row, begin);
      std::size_t end = begin + 1;
      while (end < surface.x_at.size() && shade_at(row, end) == shade) ++end;
      shades[shade].corners.push_back({{cell_of(plot.x, surface.x_at, begin).first, bottom},
                                       {cell_of(plot.x, surface.x_at, end - 1).second, top}});
      begin = end;
    }
  }
  return shades;
}

std::string contour_of(const StudyView& view, std::size_t objective, const sweep::ObjectiveSurface& surface) {
  const std::vector<sweep::Parameter>& parameters = view.definition.space.parameters();
  const std::string x_name = printable(parameters[surface.x].name),
                    y_name = printable(parameters[surface.y].name);
  Plot plot;
  plot.title = format("{} and {}", x_name, y_name);
  plot.x = Scale::of(parameters[surface.x]);
  plot.y = Scale::of(parameters[surface.y]);
  plot.height = 260;
  const auto [low, high] = std::minmax_element(surface.ranks.begin(), surface.ranks.end());
  plot.shades = shades_of(surface, plot, *low, *high);
  std::vector<PlotPlace> places;
  TrialList shown;
  for (const sweep::StudyTrial* trial : view.drawn) {
    if (!std::isnan(trial->point[surface.x]) && !std::isnan(trial->point[surface.y])) shown.push_back(trial);
  }
  for (const sweep::StudyTrial* trial : evenly(shown, kContourDots)) {
    places.push_back({place_of(plot.x, *trial, surface.x), place_of(plot.y, *trial, surface.y)});
    plot.hints.push_back(
        {places.back(),
         format("trial {}: {}, {}, {} {}", trial->number, printable(value_text(view, *trial, surface.x)),
                printable(value_text(view, *trial, surface.y)), printable(metric_of(view, objective)),
                four_digits(trial->values[objective]))});
  }
  plot.dots = {{"ink small", std::move(places)}};
  plot.note =
      format("{} upwards over {}. Strong color: {} about {}; weak: about {}; the other parameters averaged.",
             y_name, x_name, printable(metric_of(view, objective)), four_digits(value_at(surface, *low)),
             four_digits(value_at(surface, *high)));
  return draw_plot(plot);
}

// Trials with reports: the colored ones first, then complete and other ones in turn.
TrialList curve_trials(const StudyView& view, std::size_t* count) {
  TrialList colored, complete, other;
  const std::size_t most_colored = colored_trials(view);
  for (std::size_t i = 0; i < view.ranked.size(); ++i) {
    const sweep::StudyTrial* trial = view.ranked[i];
    if (trial->reports.size() < 2) continue;
    const bool is_complete = trial->state == sweep::TrialState::complete;
    (i < most_colored && is_complete ? colored : is_complete ? complete : other).push_back(trial);
  }
  *count = colored.size() + complete.size() + other.size();
  const std::size_t room = kMostCurves - std::min(kMostCurves, colored.size());
  const std::size_t of_complete = room - std::min(other.size(), room / 2);
  TrialList result = colored;
  for (const auto* trial : evenly(complete, of_complete)) result.push_back(trial);
  for (const auto* trial : evenly(other, kMostCurves - result.size())) result.push_back(trial);
  return result;
}

PlotMarks curve_of(const sweep::StudyTrial& trial, const Plot& plot) {
  std::vector<double> x, y;
  for (const auto& [step, value] : trial.reports) {
    x.push_back(static_cast<double>(step));
    y.push_back(value);
  }
  html::downsample(x, y, kCurvePoints);
  PlotMarks line;
  for (std::size_t i = 0; i < x.size(); ++i)
    line.at.push_back({plot.x.fraction(x[i]), plot.y.fraction(y[i])});
  return line;
}

std::string number_text(double number) { return format("{:.6g}", number); }

// The trials as rows of an overview, whose parallel coordinates the page shares with reports of runs.
Overview overview_of_trials(const StudyView& view) {
  Overview overview{.what = "trial", .settings = {}, .results = {}, .curves = {}, .rows = {}};
  const std::vector<std::size_t> order = view.parameters_by_importance(0);
  for (const std::size_t parameter : order)
    overview.settings.push_back(view.definition.space.parameters()[parameter].name);
  const sweep::Objective& objective = view.definition.objectives[0];
  overview.results = {
      {objective.metric, objective.goal == sweep::Goal::minimize ? Better::lower : Better::higher}};
  for (const sweep::StudyTrial* trial : best_and_evenly(view.complete(), kMostParallel)) {
    OverviewRow row;
    row.name = format("trial {}", trial->number);
    for (const std::size_t parameter : order) {
      const double at = trial->point[parameter];
      const bool is_choice =
          std::holds_alternative<sweep::Choices>(view.definition.space.parameters()[parameter].domain);
      row.settings.push_back(std::isnan(at) ? ""
                             : is_choice    ? value_text(view, *trial, parameter)
                                            : number_text(at));
    }
    row.results = {trial->values[0]};
    overview.rows.push_back(std::move(row));
  }
  return overview;
}

}  // namespace

std::string history_plot(const StudyView& view, std::size_t objective) {
  if (view.counts.complete == 0) return "";
  const std::vector<const sweep::StudyTrial*> ended = sweep::ended_trials(view.trials);
  const sweep::Goal goal = view.definition.objectives[objective].goal;
  Plot plot;
  plot.title = printable(metric_of(view, objective));
  plot.x = Scale::numbers(1, static_cast<double>(ended.size()), Scale::Spacing::linear);
  plot.y = value_scale(view, objective);
  std::vector<sweep::TrialNumber> drawn;
  for (const sweep::StudyTrial* trial : view.drawn) drawn.push_back(trial->number);
  std::sort(drawn.begin(), drawn.end());
  PlotMarks dots{"s0", {}};
  for (std::size_t place = 0; place < ended.size(); ++place) {
    const sweep::StudyTrial& trial = *ended[place];
    if (!std::binary_search(drawn.begin(), drawn.end(), trial.number)) continue;
    dots.at.push_back(
        {plot.x.fraction(static_cast<double>(place) + 1), plot.y.fraction(trial.values[objective])});
    plot.hints.push_back(
        {dots.at.back(), format("trial {}: {}", trial.number, four_digits(trial.values[objective]))});
  }
  PlotMarks line{"line s1", {}};
  double last = kNaN;
  for (const sweep::Improvement& each : sweep::improvements(view.definition, view.trials, objective)) {
    const double x = plot.x.fraction(static_cast<double>(each.place) + 1);
    line.at.push_back({x, last});
    last = plot.y.fraction(each.value);
    line.at.push_back({x, last});
  }
  line.at.push_back({plot.x.fraction(static_cast<double>(ended.size())), last});
  plot.lines = {std::move(line)};
  plot.dots = {std::move(dots)};
  plot.legend = {{"s1", goal == sweep::Goal::minimize ? "smallest so far" : "largest so far"}};
  plot.note =
      "over trials in the order of their endings." + outside_note(view, objective, plot.y) + drawn_note(view);
  return draw_plot(plot);
}

std::string front_plot(const StudyView& view) {
  if (view.definition.objectives.size() < 2 || view.best.empty()) return "";
  Plot plot;
  plot.title = format("{} and {}", printable(metric_of(view, 0)), printable(metric_of(view, 1)));
  plot.x = value_scale(view, 0);
  plot.y = value_scale(view, 1);
  plot.height = 280;
  const auto place = [&](const sweep::StudyTrial& trial) {
    return PlotPlace{plot.x.fraction(trial.values[0]), plot.y.fraction(trial.values[1])};
  };
  const auto add = [&](const TrialList& trials, std::string css_class) {
    PlotMarks dots{std::move(css_class), {}};
    for (const sweep::StudyTrial* trial : trials) {
      dots.at.push_back(place(*trial));
      plot.hints.push_back(
          {dots.at.back(), format("trial {}: {}, {}", trial->number, four_digits(trial->values[0]),
                                  four_digits(trial->values[1]))});
    }
    plot.dots.push_back(std::move(dots));
  };
  const TrialList front = evenly(view.best, kMostParallel);
  // With three objectives the front is no line.
  if (view.definition.objectives.size() == 2) {
    PlotMarks line{"line s1", {}};
    for (const sweep::StudyTrial* trial : front) {
      if (!line.at.empty()) line.at.push_back({place(*trial).x, line.at.back().y});
      line.at.push_back(place(*trial));
    }
    plot.lines = {std::move(line)};
  }
  add(view.drawn, "s0");
  add(front, "best top");
  plot.legend = {{"s1", "Pareto front"}};
  plot.note = format("{} upwards over {}.", printable(metric_of(view, 1)), printable(metric_of(view, 0))) +
              outside_note(view, 0, plot.x) + outside_note(view, 1, plot.y) + drawn_note(view);
  return draw_plot(plot);
}

std::string importance_bars(const StudyView& view, std::size_t objective) {
  std::string bars;
  for (const sweep::ParameterImportance& each : view.importances[objective]) {
    const double share = 100 * each.share;
    bars += html::element("span", "", printable(view.definition.space.parameters()[each.parameter].name)) +
            format(
                "<svg class=\"bar\" role=\"img\" aria-label=\"{:.0f} %\" width=\"100%\" height=\"14\"><rect "
                "class=\"weight\" width=\"{:.1f}%\" height=\"14\"/></svg>",
                share, std::max(share, 0.2)) +
            html::element("span", "", format("{:.0f} %", share));
  }
  return bars.empty() ? "" : "<div class=\"bars\">" + bars + "</div>";
}

std::string slice_plots(const StudyView& view, std::size_t objective) {
  if (view.counts.complete == 0) return "";
  std::string plots;
  std::size_t drawn = 0;
  const std::vector<std::size_t> order = view.parameters_by_importance(objective);
  for (const std::size_t parameter : order) {
    if (sweep::value_count(view.definition.space.parameters()[parameter]) == 1 || drawn == kMostSlices)
      continue;
    const Plot plot = slice_of(view, objective, parameter);
    if (plot.hints.empty()) continue;
    plots += draw_plot(plot);
    ++drawn;
  }
  if (plots.empty()) return "";
  std::string note = outside_note(view, objective, value_scale(view, objective)) + drawn_note(view);
  if (drawn == kMostSlices && order.size() > drawn)
    note += format(" The {} most important of {} parameters.", drawn, order.size());
  note = trim(note);
  return "<div class=\"charts small\">" + plots + "</div>" +
         (note.empty() ? "" : html::element("p", "source", note));
}

std::string contour_plots(const StudyView& view, std::size_t objective) {
  if (view.importances[objective].size() < 2) return "";
  const std::vector<std::size_t> order = view.parameters_by_importance(objective);
  // By the sum of their places.
  constexpr std::array<std::pair<std::size_t, std::size_t>, 4> kPairs = {{{0, 1}, {0, 2}, {1, 2}, {0, 3}}};
  std::string plots;
  std::size_t drawn = 0;
  for (const auto& [first, second] : kPairs) {
    if (second >= order.size() || drawn == kMostContours) continue;
    const auto surface =
        sweep::objective_surface(view.definition, view.trials, objective, order[first], order[second]);
    if (!surface) continue;
    plots += contour_of(view, objective, *surface);
    ++drawn;
  }
  return plots.empty() ? "" : "<div class=\"charts\">" + plots + "</div>";
}

std::size_t colored_trials(const StudyView& view) {
  Overview overview;
  // Over eight rows, their number does not matter.
  overview.rows.resize(std::min<std::size_t>(view.counts.complete, 9));
  return html::colored_rows(overview);
}

std::string curves_plot(const StudyView& view) {
  std::size_t count = 0;
  const TrialList trials = curve_trials(view, &count);
  if (trials.empty()) return "";
  double first = std::numeric_limits<double>::infinity(), last = -first;
  std::vector<double> values;
  for (const sweep::StudyTrial* trial : trials) {
    first = std::min(first, static_cast<double>(trial->reports.begin()->first));
    last = std::max(last, static_cast<double>(trial->reports.rbegin()->first));
    for (const auto& [step, value] : trial->reports) values.push_back(value);
  }
  Plot plot;
  plot.title = printable(metric_of(view, 0));
  plot.x = Scale::numbers(first, last, Scale::Spacing::linear);
  plot.y = Scale::of_values(values, view.definition.objectives[0].goal);
  plot.height = 260;
  std::vector<PlotMarks> colored;
  for (const sweep::StudyTrial* trial : trials) {
    PlotMarks line = curve_of(*trial, plot);
    const auto end = view.ranked.begin() + static_cast<std::ptrdiff_t>(colored_trials(view));
    const auto rank = std::find(view.ranked.begin(), end, trial);
    const bool is_complete = trial->state == sweep::TrialState::complete;
    line.css_class = is_complete ? "faint s0" : "pruned s7";
    if (rank == end || !is_complete) {
      plot.lines.push_back(std::move(line));
      continue;
    }
    const std::string color = format("s{}", rank - view.ranked.begin());
    line.css_class = "line " + color;
    plot.legend.emplace_back(color, format("trial {}", trial->number));
    colored.push_back(std::move(line));
  }
  plot.lines.insert(plot.lines.end(), colored.begin(), colored.end());
  plot.note = "over steps. In color: the best trials; dotted: pruned, failed and running ones.";
  if (trials.size() < count)
    plot.note += format(" Drawn: {} of {} trials with reports.", trials.size(), grouped(count));
  return draw_plot(plot);
}

std::string parallel_plot(const StudyView& view) {
  std::string plot = html::draw_parallel(overview_of_trials(view));
  if (!plot.empty() && view.counts.complete > kMostParallel)
    plot += html::element(
        "p", "source",
        format("Drawn: {} of {}.", kMostParallel, counted(view.counts.complete, "complete trial")));
  return plot;
}

}  // namespace stoker::report::study
