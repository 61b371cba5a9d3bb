// The option --lang of commands with translated messages.
#pragma once

#include <string>

#include "base/language/translator.h"
#include "cli/arguments.h"

namespace stoker::cli {

/// Declares it.
void add_language_option(Arguments& arguments, std::string* name);

/// The translator for a language code; "auto" uses the first of LC_ALL, LC_MESSAGES and LANG that is set.
/// Invalid, with the choices, for an unknown code.
Result<Translator> parse_language(const std::string& name);

/// The language code of a valid --lang value: "fr" for "fr", the code of the locale for "auto".
std::string resolve_language_code(const std::string& name);

inline constexpr const char* kLocaleLanguage = "auto";

}  // namespace stoker::cli
