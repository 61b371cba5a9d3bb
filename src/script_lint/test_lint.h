// Test helper for the script rules: findings of one rule.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "script_lint/lint.h"
#include "stoker/text.h"

namespace stoker::script_lint {

using Found = std::vector<std::string>;

// The findings of one rule as "line:level", in an empty folder by default.
inline Found found(std::string_view rule, std::string_view text, LintContext place = {}) {
  const TempDirectory folder;
  if (place.directory.empty()) place.directory = folder.path();
  Found out;
  for (const ScriptFinding& finding : lint_script("a.sh", std::string(text), place).findings) {
    if (finding.rule == rule) out.push_back(format("{}:{}", finding.line, to_text(finding.level)));
  }
  return out;
}

}  // namespace stoker::script_lint
