// HTML elements. All external text is escaped by `escape_html` of base/encode.h. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

#include "report/tables.h"

namespace stoker::report::html {

/// "<name class='...'>escaped</name>"; no class attribute when it is empty.
std::string element(std::string_view name, std::string_view css_class, std::string_view text);

/// A section of the page with its heading and the source of its content; "" without a body.
std::string section(std::string_view title, std::string_view source, std::string_view body);

/// The last `summing` rows are separated. "" without rows.
std::string table_html(const Table& table, std::size_t summing = 0);

/// "sha256-<base64>": identifies an inline style or script in a content policy.
std::string policy_hash(std::string_view content);

}  // namespace stoker::report::html
