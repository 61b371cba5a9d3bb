// Findings as SARIF 2.1.0 for code hosts and editors.
#pragma once

#include <string>

#include "base/language/translator.h"
#include "script_lint/lint.h"

namespace stoker::cli {

/// One run over one script, with every rule described; `name` is the script's path.
std::string to_sarif(const std::string& name, const script_lint::LintResult& lint, const Translator& words);

}  // namespace stoker::cli
