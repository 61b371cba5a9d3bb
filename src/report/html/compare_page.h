// A comparison of runs as an HTML page. Used by `stoker compare`. Thread-safe: no state.
#pragma once

#include <span>
#include <string>

#include "report/compare/comparison.h"
#include "report/facts.h"

namespace stoker::report {

/// A self-contained page like that of a report: results, differences and the curves of both groups, which the
/// comparison was made of.
std::string compare_page(const RunComparison& comparison, std::span<const RunFacts> before,
                         std::span<const RunFacts> after);

}  // namespace stoker::report
