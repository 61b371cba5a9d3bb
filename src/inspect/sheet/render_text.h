// The beginning of a text as HTML. Used by pages that show samples. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace stoker::inspect {

/// Whether files of the component are texts: "txt", "caption.txt", "json", "csv".
bool is_text_component(std::string_view component);

struct TextExcerpt {
  std::string html;     ///< needs kTextStyle
  std::string caption;  ///< size and warnings: plain text
};

/// The first characters and lines. Markup is escaped; invalid UTF-8 and bidirectional controls appear as
/// \xNN. Invalid JSON is noted in the caption.
TextExcerpt render_text(std::string_view component, std::span<const std::byte> bytes);

/// Style sheet in addition to kArrayStyle.
extern const std::string_view kTextStyle;

}  // namespace stoker::inspect
