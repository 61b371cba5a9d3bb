// Several runs, or the tasks of an array, as HTML: table, overlaid curves, parallel coordinates. For page.cc
// only.
#pragma once

#include <string>

#include "report/overview.h"

namespace stoker::report::html {

/// Sections for the page; "" without rows.
std::string overview_sections(const Overview& overview);

/// One axis per setting and one for the first result; one line per row. "" for fewer than three rows with
/// that result, or without settings.
std::string draw_parallel(const Overview& overview);

/// Number of rows with a color, the same in all charts; the remaining rows are faint.
std::size_t colored_rows(const Overview& overview);

}  // namespace stoker::report::html
