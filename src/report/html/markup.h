// HTML elements. All external text is escaped by `escape_html` of base/encode.h. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

namespace stoker::report::html {

/// "<name class='...'>escaped</name>"; no class attribute when it is empty.
std::string element(std::string_view name, std::string_view css_class, std::string_view text);

/// "sha256-<base64>": identifies an inline style or script in a content policy.
std::string policy_hash(std::string_view content);

}  // namespace stoker::report::html
