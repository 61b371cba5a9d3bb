// Output of `stoker data pack` and `data convert`: plan and summary. Thread-safe: no state.
#pragma once

#include <optional>
#include <string_view>

#include "base/json/json.h"
#include "cli/output.h"
#include "pack/pack.h"

namespace stoker::cli {

/// `doing` begins the first line: "packing".
void print_plan(const pack::PackPlan& plan, std::string_view doing, Output& out);
void print_summary(const pack::PackPlan& plan, const pack::PackSummary& summary, Output& out);
/// Prints the numbers of selected and dropped rows.
void print_table(const sources::TableFacts& table, const sources::TableOptions& options, Output& out);
/// Null without a selection of rows or columns.
nlohmann::ordered_json table_json(const std::optional<sources::TableFacts>& table);
nlohmann::ordered_json describe(const pack::PackPlan& plan, const pack::PackSummary& summary);

}  // namespace stoker::cli
