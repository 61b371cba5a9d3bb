// The option --lang of commands that speak several languages.
#pragma once

#include <string>

#include "base/language/words.h"
#include "cli/arguments.h"

namespace stoker::cli {

/// Declares it.
void add_language_option(Arguments& arguments, std::string* name);

/// The language of that name; without one ("auto") that of LC_ALL, LC_MESSAGES or LANG, the first that is
/// set. Invalid, with the choices, for a name that is none.
Result<Words> words_named(const std::string& name);

inline constexpr const char* kLanguageOfLocale = "auto";

}  // namespace stoker::cli
