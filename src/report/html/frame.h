// Head and end of a page that needs no other file and no network. Thread-safe: no state.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stoker::report::html {

/// Up to and with <body>. The content policy allows only these styles and scripts, by their hashes.
std::string page_head(std::string_view title, std::span<const std::string_view> styles,
                      std::span<const std::string_view> scripts);

/// The scripts, and the end of the page.
std::string page_end(std::span<const std::string_view> scripts);

}  // namespace stoker::report::html
