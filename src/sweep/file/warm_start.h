// Trials of other studies that the sampler of a new study knows beforehand. No state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"
#include "sweep/study/definition.h"

namespace stoker::sweep {

/// Complete trials as points and values of the new study.
struct PriorTrials {
  std::vector<StudyTrial> trials;
  std::vector<std::string> notes;  ///< for each source how many trials it has, and how many do not fit
};

/// Reads Definition::warm_start: folders of studies, sweep files, and tables as `stoker sweep export` writes
/// them (.csv). Relative paths are relative to `folder`. A trial fits if it has a value of the space for each
/// active parameter and no other parameters, and satisfies the constraints. Invalid for a source without an
/// objective of the definition.
Result<PriorTrials> read_prior_trials(const Definition& definition, const Path& folder);

/// The same of one table; `name` is its name in messages.
Result<PriorTrials> parse_prior_table(const Definition& definition, std::string_view name,
                                      std::string_view text);

}  // namespace stoker::sweep
