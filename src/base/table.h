// Aligned tables for terminals, and fields of CSV files. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker {

/// Aligned columns under a header, one line per row, without trailing blanks. Columns whose cells are all
/// numbers are right-aligned. REQUIRES: each row has as many cells as the header.
std::string table_text(const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows);

/// A field of a CSV file (RFC 4180): in quotes if it has a comma, a quote or a line end.
std::string csv_field(std::string_view text);

}  // namespace stoker
