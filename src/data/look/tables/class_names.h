// What is said of all tables of a source together: the classes that labels of text are, what was read, and
// what no table has. Thread-safe: no state.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/look/shard_scan.h"
#include "data/look/tables/table_options.h"

namespace stoker::data {

/// The names of classes, sorted, where labels are texts; samples then have their numbers. Texts that all are
/// whole numbers stand for themselves, and nothing is named. Invalid where some tables have texts and others
/// numbers.
Result<std::vector<std::string>> number_classes(std::span<ShardScan* const> scans);

void add_to(std::optional<TableFacts>& sum, const TableFacts& facts);

/// That no row was left.
Status nothing_chosen(std::string_view subject, const TableFacts& facts);
/// That options choose of tables, and there is none.
Status no_table(std::string_view subject);

}  // namespace stoker::data
