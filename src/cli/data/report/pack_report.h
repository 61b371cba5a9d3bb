// What `stoker data pack` and `data convert` print of a plan and of what came out. Thread-safe: no state.
#pragma once

#include <optional>
#include <string_view>

#include "base/json/json.h"
#include "cli/output.h"
#include "data/pack/pack.h"

namespace stoker::cli {

/// `doing` begins the first line: "packing".
void print_plan(const data::PackPlan& plan, std::string_view doing, Output& out);
void print_summary(const data::PackPlan& plan, const data::PackSummary& summary, Output& out);
/// Rows that were chosen and left out.
void print_table(const data::TableFacts& table, const data::TableOptions& options, Output& out);
/// Null where no rows and columns were chosen.
nlohmann::ordered_json table_json(const std::optional<data::TableFacts>& table);
nlohmann::ordered_json describe(const data::PackPlan& plan, const data::PackSummary& summary);

}  // namespace stoker::cli
