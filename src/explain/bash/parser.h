// Reads bash: quoting, expansions, here-documents, pipelines, compound commands, functions. Extended patterns
// (`@(a|b)`) are taken without asking whether the shell has them switched on. Used by the rules over people's
// own scripts; fuzz/explain/bash_fuzz.cc feeds it. Thread-safe: no state.
#pragma once

#include <string_view>

#include "explain/bash/syntax.h"

namespace stoker::explain::bash {

/// How deep commands and expansions may lie in each other. Deeper ones are a syntax error here.
constexpr int kDeepest = 60;

/// Reads `text` from `part.begin` to before `part.end`; places are those of `text`. Never fails: what cannot
/// be read is in `error`, and the list holds what came before it.
Script parse(std::string_view text, Span part);
Script parse(std::string_view text);

/// Whether the word opens or closes a compound command: "if", "done", "{", "[[", ...
bool is_reserved(std::string_view word);

/// The word's text when nothing in it is expanded by the shell, patterns included.
std::optional<std::string> literal(const Word& word);

}  // namespace stoker::explain::bash
