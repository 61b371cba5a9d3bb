// A comparison as text, as tables and as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/compare/comparison.h"
#include "report/tables.h"

namespace stoker::report {

constexpr std::string_view kNoDifferences = "no differences in data, parameters, code, software and hardware";

/// "loss of B: -20.0 %, better": the first result whose good direction is known.
std::string comparison_headline(const RunComparison& comparison);
/// One row per fact with different values.
Table differences_table(const RunComparison& comparison);
/// One row per result.
Table compared_results_table(const RunComparison& comparison);

/// Both tables.
std::string to_plain_text(const RunComparison& comparison);

/// One JSON value. Format: docs/commands/compare.md.
std::string to_json(const RunComparison& comparison, const std::vector<GuardVerdict>& guards);

}  // namespace stoker::report
