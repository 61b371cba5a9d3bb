// The beginning of a text as HTML. Used by pages that show samples. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace stoker::data {

/// Whether files of that component are texts: "txt", "caption.txt", "json", "csv".
bool is_text_component(std::string_view component);

struct TextExcerpt {
  std::string html;     ///< needs kTextStyle
  std::string caption;  ///< size, and what is odd about it: plain text
};

/// Its first letters and lines, as they are: markup is shown and means nothing, and bytes that are no letters
/// or turn the others around stand as \xNN. What says it is JSON and is none is told so.
TextExcerpt excerpt_of_text(std::string_view component, std::span<const std::byte> bytes);

/// Its style sheet, beside that of arrays.
extern const std::string_view kTextStyle;

}  // namespace stoker::data
