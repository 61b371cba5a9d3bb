// Parses bash: quoting, expansions, here-documents, pipelines, compound commands, functions. Accepts extended
// patterns (`@(a|b)`) whether or not `extglob` is on. Used by the rules for user scripts; fuzzed by
// fuzz/explain/bash_fuzz.cc. Thread-safe: no state.
#pragma once

#include <string_view>

#include "bash/syntax.h"

namespace stoker::bash {

/// Maximum nesting of commands and expansions. Deeper nesting is a syntax error here.
constexpr int kDeepest = 60;

/// Parses `text` from `part.begin` up to `part.end`; spans refer to `text`. Never fails: `error` has the
/// first syntax error, and the list has the commands before it.
SyntaxTree parse(std::string_view text, Span part);
SyntaxTree parse(std::string_view text);

/// Whether the word opens or closes a compound command: "if", "done", "{", "[[", ...
bool is_reserved(std::string_view word);

/// The text of a word without expansions and patterns; nothing otherwise.
std::optional<std::string> literal(const Word& word);

}  // namespace stoker::bash
