// Character classes of bash. Used by the parser and by the script rules. No state.
#pragma once

namespace stoker::bash {

constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
constexpr bool is_meta(char c) {
  return c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '<' || c == '>';
}
constexpr bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
/// Part of a variable name.
constexpr bool is_name(char c) { return is_name_start(c) || is_digit(c); }

}  // namespace stoker::bash
