// Trials of other studies that a study's sampler knows beforehand, as text: records of a journal. Pure
// functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"
#include "sweep/study/definition.h"
#include "sweep/trial.h"

namespace stoker::sweep {

/// A start and an end record for each.
std::string prior_text(std::span<const StudyTrial> prior);
/// Corrupt if it is not what prior_text() wrote for this definition, whole. `subject` names it in messages.
Result<std::vector<StudyTrial>> prior_from_text(const Definition& definition, std::string_view text,
                                                std::string_view subject);

}  // namespace stoker::sweep
