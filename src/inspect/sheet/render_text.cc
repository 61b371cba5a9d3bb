#include "inspect/sheet/render_text.h"

#include <algorithm>
#include <cstdint>

#include "base/encode.h"
#include "base/json/json.h"
#include "stoker/bytes.h"
#include "stoker/text.h"

namespace stoker::inspect {

const std::string_view kTextStyle =
    "figure.wide{width:296px}figure div.lines{width:296px;white-space:pre-wrap;tab-size:2}";

namespace {

constexpr std::size_t kMaxLetters = 600;
constexpr std::size_t kMaxLines = 20;
constexpr std::size_t kMaxJson = 1 << 20;           // larger JSON is not validated
constexpr std::string_view kMark = "\xEF\xBB\xBF";  // byte order mark of UTF-8

constexpr std::string_view kTexts[] = {"txt", "text", "caption", "md",  "json", "jsonl", "csv",
                                       "tsv", "xml",  "html",    "yml", "yaml", "srt",   "py"};

bool is_named(std::string_view component, std::string_view extension) {
  if (!component.ends_with(extension)) return false;
  component.remove_suffix(extension.size());
  return component.empty() || component.ends_with('.');
}

// Number of bytes to show: whole characters of valid UTF-8, else single bytes.
std::size_t shown_bytes(std::string_view text) {
  std::size_t end = 0;
  std::size_t lines = 1;
  for (std::size_t letters = 0; letters < kMaxLetters && end < text.size(); ++letters) {
    if (text[end] == '\n' && ++lines > kMaxLines) break;
    end += std::max<std::size_t>(1, utf8_length(text.substr(end)));
  }
  return end;
}

// Keeps tabs and line ends; escapes all other non-printable characters.
std::string escape_nonprintable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\t\n", at), text.size());
    std::string_view piece = text.substr(at, end - at);
    const bool ends_line = end < text.size() && text[end] == '\n';
    if (ends_line && piece.ends_with('\r')) piece.remove_suffix(1);
    out += printable(piece);
    if (end < text.size()) out += text[end];
    at = end + 1;
  }
  return out;
}

}  // namespace

bool is_text_component(std::string_view component) {
  return std::ranges::any_of(kTexts, [&](std::string_view text) { return is_named(component, text); });
}

TextExcerpt render_text(std::string_view component, std::span<const std::byte> bytes) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string_view text = all;
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  const std::size_t end = shown_bytes(text);
  const std::size_t left = text.size() - end;
  TextExcerpt excerpt;
  excerpt.html = format("<div class=\"numbers text lines\">{}{}</div>",
                        escape_html(escape_nonprintable(text.substr(0, end))),
                        left == 0 ? "" : format(" … {} more", rounded({left})));
  excerpt.caption = rounded({all.size()});
  if (text.empty()) excerpt.caption += ", empty";
  if (is_named(component, "json") && !text.empty() && all.size() <= kMaxJson &&
      parse_json<nlohmann::json>(text).is_discarded())
    excerpt.caption += ", no JSON";
  return excerpt;
}

}  // namespace stoker::inspect
