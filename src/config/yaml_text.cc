#include "config/yaml_text.h"

#include <algorithm>
#include <array>

#include "stoker/text.h"

namespace stoker::config {
namespace {

struct Translation {
  std::string_view problem;
  std::string_view text;
};

constexpr std::array kTranslations = {
    Translation{"mapping values are not allowed in this context",
                "unexpected ':'; put text that contains ': ' in quotes, and check the indentation"},
    Translation{"did not find expected key", "expected a key here; check the indentation"},
    Translation{"did not find expected '-' indicator", "expected a '-' here; check the indentation"},
    Translation{"could not find expected ':'", "a ':' is missing after this key"},
    Translation{"did not find expected <document start>", "text after the end of the document"},
    Translation{"did not find expected ',' or ']'", "expected ',' or ']' here"},
    Translation{"did not find expected ',' or '}'", "expected ',' or '}' here"},
    Translation{"found unexpected document indicator", "'---' or '...' inside a quoted text"},
    Translation{"found unknown escape character",
                "unknown escape; in double quotes write \\\\ for a backslash, or use single quotes"},
    Translation{"block sequence entries are not allowed in this context", "unexpected list item '-'"},
    Translation{"found a tab character that violates indentation", "tab in the indentation; use spaces"},
};

std::size_t line_start(std::string_view text, std::size_t at) {
  const std::size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  return before == std::string_view::npos ? 0 : before + 1;
}

// The first tab in the indentation of the line of `at`.
std::optional<std::size_t> indentation_tab(std::string_view text, std::size_t at) {
  for (std::size_t i = line_start(text, at); i < text.size() && (text[i] == ' ' || text[i] == '\t'); ++i) {
    if (text[i] == '\t') return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<TextError> find_bad_text(std::string_view text) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return TextError{0, "UTF-16 text; save the file as UTF-8"};
  }
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (length == 0)
      return TextError{i, format("byte 0x{:02x} is not UTF-8; save the file as UTF-8", int{c})};
    const bool is_control = length == 1 && ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F);
    // U+0080 to U+009F, the line ends NEL, LS and PS (which editors and YAML count differently), and a byte
    // order mark after the first character.
    const std::string_view character = text.substr(i, length);
    const bool is_odd = (length == 2 && c == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0) ||
                        character == "\xe2\x80\xa8" || character == "\xe2\x80\xa9" ||
                        character == "\xef\xbb\xbf" || character == "\xef\xbf\xbe" ||
                        character == "\xef\xbf\xbf";
    if (is_control && c == 0) return TextError{i, "zero byte: not a text file"};
    if (is_control) return TextError{i, format("control character 0x{:02x}", int{c})};
    if (is_odd) return TextError{i, "unexpected invisible character; retype the line"};
    i += length;
  }
  return std::nullopt;
}

TextError explain_syntax(std::string_view text, const SyntaxError& error) {
  if (const auto tab = indentation_tab(text, error.at); tab && *tab <= error.at) {
    return {*tab, "tab in the indentation; use spaces"};
  }
  if (error.problem == "found unexpected end of stream") {
    return {error.context_at, "this quote is not closed"};
  }
  if (error.problem == "found character that cannot start any token" && error.at < text.size()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text.substr(error.at)));
    return {error.at, format("a value cannot start with '{}'; put it in quotes",
                             printable(text.substr(error.at, length)))};
  }
  const bool is_reference = error.at > 0 && error.at < text.size() && text.substr(error.at - 1, 2) == "${";
  if (is_reference) return {error.at - 1, "inside {...} and [...] a reference needs quotes: \"${...}\""};
  const bool is_at_end = text.substr(std::min(error.at, text.size())).find_first_not_of(" \r\n") == text.npos;
  if (is_at_end && error.context == "while parsing a flow mapping") {
    return {error.context_at, "this '{' is not closed"};
  }
  if (is_at_end && error.context == "while parsing a flow sequence") {
    return {error.context_at, "this '[' is not closed"};
  }
  for (const Translation& translation : kTranslations) {
    if (translation.problem == error.problem) {
      // libyaml reports "could not find expected ':'" on a later line than the key.
      const bool is_key = error.problem == "could not find expected ':'";
      return {is_key ? error.context_at : error.at, std::string(translation.text)};
    }
  }
  return {error.at, format("not valid YAML: {}", error.problem)};
}

bool is_null_word(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

}  // namespace stoker::config
