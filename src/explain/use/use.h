// How a run used the machine it was given, from the samples beside its ranks: GPUs that never worked or that
// wait again and again, CPUs that were asked for and idle, memory that grows step by step, steps that wait
// for data or for other ranks. Used by `stoker explain`. Thread-safe: no state.
#pragma once

#include <vector>

#include "base/finding.h"
#include "base/language/words.h"
#include "job/job.h"
#include "record/metrics.h"
#include "record/run_folder.h"

namespace stoker::explain {

/// What one attempt's samples tell. Nothing of a run too short to judge: fewer than 60 samples.
std::vector<Finding> findings_of_use(const record::Attempt& attempt, const Words& words = Words());

/// One node's samples, and what its ranks asked for.
struct NodeUse {
  int node = 0;
  std::string file;  ///< "system-0000.csv"
  record::MetricTable samples;
  record::MetricTable steps;  ///< of rank 0; without rows where it records none
  job::Resources asked;
  Words words;  ///< that findings are told in
};
/// The same of one node.
std::vector<Finding> findings_of_node(const NodeUse& use);

/// Waiting for data and for other ranks in the steps of a rank; nothing where it is little.
std::vector<Finding> findings_of_steps(const std::string& file, const record::MetricTable& steps,
                                       const Words& words = Words());

}  // namespace stoker::explain
