// What is wrong with a text before and while libyaml reads it, in words people understand. Used by yaml.cc.
// Thread-safe: no state.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace stoker::config {

/// A mistake and its byte.
struct SyntaxMistake {
  std::size_t at = 0;
  std::string text;
};

/// What libyaml said; offsets in bytes.
struct SyntaxError {
  std::string_view problem;
  std::string_view context;
  std::size_t at = 0;
  std::size_t context_at = 0;
};

/// The first byte that no configuration text may hold: a NUL, a control character, broken UTF-8.
std::optional<SyntaxMistake> find_bad_text(std::string_view text);

/// libyaml's complaint, placed where the mistake is rather than where it was noticed.
SyntaxMistake explain_syntax(std::string_view text, const SyntaxError& error);

/// Whether a plain scalar means "nothing": empty, ~, null.
bool is_null_word(std::string_view text);

}  // namespace stoker::config
