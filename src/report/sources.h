// Shared by the readers of a run's files. Used within src/report only.
#pragma once

#include <string>
#include <vector>

#include "report/facts.h"

namespace stoker::report {

/// One attempt on disk, with its offset in running time.
struct AttemptSource {
  record::Attempt attempt;
  const AttemptFacts* facts;
  double before = 0;  ///< running time of earlier attempts

  double run_time(double unix_s) const;
};

/// The index N of every "<stem>-N.<extension>" in the attempt's folder, ascending.
std::vector<int> indices_of(const record::Attempt& attempt, std::string_view stem,
                            std::string_view extension);
/// Adds a note about damaged lines or a truncated file.
void note_damage(RunFacts& facts, const Path& file, std::size_t damaged, bool truncated);

}  // namespace stoker::report
