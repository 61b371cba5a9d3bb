// The page of a study as HTML or JSON. Used by `stoker sweep page`. Thread-safe: no state.
#pragma once

#include <string>

#include "report/study/study_view.h"

namespace stoker::report::study {

/// A self-contained page with a content policy that allows no other file and no network. `now`: Unix time in
/// seconds.
std::string study_page(const sweep::Study& study, const StudyView& view, double now);

/// {"study", "objectives", "counts", "skipped", "best", "importances", "failures"}.
std::string study_json(const StudyView& view);

}  // namespace stoker::report::study
