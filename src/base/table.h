// Aligned tables for terminals. Thread-safe: no state.
#pragma once

#include <string>
#include <vector>

namespace stoker {

/// Aligned columns under a header, one line per row, without trailing blanks. Columns whose cells are all
/// numbers are right-aligned. REQUIRES: each row has as many cells as the header.
std::string table_text(const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace stoker
