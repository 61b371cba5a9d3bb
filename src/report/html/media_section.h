// Images and histograms that the program logged, as a section of a run's page. For page.cc only.
#pragma once

#include <string>

#include "report/facts.h"

namespace stoker::report::html {

/// "" without any.
std::string media_section(const RunFacts& facts);

}  // namespace stoker::report::html
