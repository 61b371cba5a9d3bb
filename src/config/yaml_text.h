// Explains errors in a text before and during libyaml's parsing. Used by yaml.cc. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::config {

/// An error and its byte.
struct TextError {
  std::size_t at = 0;
  std::string text;
};

/// An error of libyaml; offsets in bytes.
struct SyntaxError {
  std::string_view problem;
  std::string_view context;
  std::size_t at = 0;
  std::size_t context_at = 0;
};

/// The first invalid byte of a configuration text: NUL, a control character, invalid UTF-8.
std::optional<TextError> find_bad_text(std::string_view text);

/// Replaces libyaml's message, and its position by the position of the cause.
TextError explain_syntax(std::string_view text, const SyntaxError& error);

/// Whether a plain scalar is null: empty, ~, null.
bool is_null_word(std::string_view text);

}  // namespace stoker::config
