// Combines all tables of a source: classes of text labels, and facts. Thread-safe: no state.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sources/shard_scan.h"
#include "sources/table_options.h"
#include "stoker/status.h"

namespace stoker::sources {

/// The sorted class names of text labels; sets the samples' labels to their index. If all texts are integers,
/// they are the labels and there are no names. Number labels have the names in the tables' metadata, in the
/// order of the numbers. Invalid if some tables have texts and others numbers, if names differ between
/// tables, and for a number without a name.
Result<std::vector<std::string>> number_classes(std::span<ShardScan* const> scans);

void add_facts(std::optional<TableFacts>& sum, const TableFacts& facts);

/// The error for a selection without rows.
Status no_rows_selected(std::string_view subject, const TableFacts& facts);
/// The error for table options without a table.
Status not_a_table(std::string_view subject);

}  // namespace stoker::sources
