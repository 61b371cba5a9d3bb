// The plots of a study's report; "" if there is nothing to draw. For study_page.cc only.
#pragma once

#include <cstddef>
#include <string>

#include "report/study/study_view.h"

namespace stoker::report::study {

/// The values of an objective in the order of the endings, and the best one so far.
std::string history_plot(const StudyView& view, std::size_t objective);
/// The first two objectives and their Pareto front.
std::string front_plot(const StudyView& view);
/// A bar for each parameter.
std::string importance_bars(const StudyView& view, std::size_t objective);
/// An objective over each parameter, the most important one first.
std::string slice_plots(const StudyView& view, std::size_t objective);
/// An objective over the two most important pairs of parameters.
std::string contour_plots(const StudyView& view, std::size_t objective);
/// The reports of trials by step.
std::string curves_plot(const StudyView& view);
/// A line for each trial through its parameters and its first objective.
std::string parallel_plot(const StudyView& view);

/// The number of trials with a separate color, the same in curves and parallel coordinates.
std::size_t colored_trials(const StudyView& view);

}  // namespace stoker::report::study
