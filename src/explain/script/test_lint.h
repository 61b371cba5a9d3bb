// For the tests of rules over batch scripts: what one rule finds in a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "explain/script/lint.h"

namespace stoker::explain {

using Found = std::vector<std::string>;

// The findings of one rule as "line:level", in an empty folder unless the place says another.
inline Found found(std::string_view rule, std::string_view text, ScriptPlace place = {}) {
  const TempDirectory folder;
  if (place.directory.empty()) place.directory = folder.path();
  Found out;
  for (const ScriptFinding& finding : lint_script("a.sh", std::string(text), place).findings) {
    if (finding.rule == rule) out.push_back(format("{}:{}", finding.line, to_text(finding.level)));
  }
  return out;
}

}  // namespace stoker::explain
