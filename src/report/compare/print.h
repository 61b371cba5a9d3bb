// A comparison as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "report/compare/comparison.h"

namespace stoker::report {

/// Two tables: what differs, and the results.
std::string to_plain_text(const RunComparison& comparison);

/// One JSON value. Format: docs/commands/compare.md.
std::string to_json(const RunComparison& comparison, const std::vector<GuardVerdict>& guards);

}  // namespace stoker::report
