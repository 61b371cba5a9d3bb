// Findings as SARIF 2.1.0, which code hosts and editors show beside the lines.
#pragma once

#include <string>

#include "explain/script/lint.h"

namespace stoker::cli {

/// One run over one script, with every rule described; `name` is the script's path.
std::string sarif_of(const std::string& name, const explain::Lint& lint, const Words& words);

}  // namespace stoker::cli
