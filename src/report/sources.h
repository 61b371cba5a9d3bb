// The pieces of gathering: each reads one kind of file of a run's attempts. For gather.cc only.
#pragma once

#include <string>
#include <vector>

#include "report/facts.h"

namespace stoker::report {

/// One attempt on disk, with its place on the axis of running time.
struct AttemptSource {
  record::Attempt attempt;
  const AttemptFacts* facts;
  double before = 0;  ///< seconds that earlier attempts ran

  double run_time(double unix_s) const;
};

/// Step metrics of all ranks and the rows of epochs.csv.
void read_learning(const std::vector<AttemptSource>& attempts, RunFacts& facts);
/// system-*.csv of all nodes.
void read_system(const std::vector<AttemptSource>& attempts, RunFacts& facts);
/// trace-*.json of the last attempt that has such files.
void read_traces(const std::vector<AttemptSource>& attempts, RunFacts& facts);
/// Log ends of the last attempt: of the rank whose end decided, and of rank 0.
void read_logs(const record::Attempt& last, RunFacts& facts);

/// The index N of every "<stem>-N.<extension>" in the attempt's folder, ascending.
std::vector<int> indices_of(const record::Attempt& attempt, std::string_view stem,
                            std::string_view extension);
/// "1 damaged line left out of ..." for what a reader had to pass over.
void note_damage(RunFacts& facts, const Path& file, std::size_t damaged, bool truncated);

}  // namespace stoker::report
