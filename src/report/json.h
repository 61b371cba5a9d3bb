// A report as JSON. Used by `stoker report`. Thread-safe: no state.
#pragma once

#include <span>
#include <string>

#include "report/facts.h"

namespace stoker::report {

/// {"format": "stoker-report", "version": 1, "runs": [...]}: fields in docs/commands/report.md.
std::string to_json(std::span<const RunFacts> runs);

}  // namespace stoker::report
