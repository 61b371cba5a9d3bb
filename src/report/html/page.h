// A report as an HTML page. Used by `stoker report`. Thread-safe: no state.
#pragma once

#include <span>
#include <string>

#include "report/facts.h"

namespace stoker::report {

/// A self-contained page with a content policy that allows no other file and no network.
std::string to_html(std::span<const RunFacts> runs);

}  // namespace stoker::report
