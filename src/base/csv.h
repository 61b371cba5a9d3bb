// Reads CSV files. Thread-safe: no state. base/table.h writes them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"

namespace stoker {

/// The cells of the next row of a CSV text (RFC 4180) without blanks around them. `text` is advanced past the
/// row, `line` by its lines. Invalid for a quote that is not closed and for over 1 000 cells; `name` names
/// the file in messages.
Result<std::vector<std::string>> next_csv_row(std::string_view name, std::string_view& text,
                                              std::size_t* line);

}  // namespace stoker
