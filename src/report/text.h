// A report as plain text. Used by `stoker report`. Thread-safe: no state.
#pragma once

#include <span>
#include <string>

#include "report/facts.h"
#include "report/tables.h"

namespace stoker::report {

/// For a terminal: a few screens, without control characters except newlines.
std::string to_plain_text(std::span<const RunFacts> runs);

/// Appends the header and the last rows of a table with aligned columns, two blanks before each line.
void add_rows(std::string& out, const Table& table);

}  // namespace stoker::report
