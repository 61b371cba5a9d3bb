// Checks how a run used its machine, from samples: unused or alternating GPUs, idle CPUs, growing memory,
// steps that wait for data or peers. Used by `stoker explain`. Thread-safe: no state.
#pragma once

#include <vector>

#include "base/finding.h"
#include "base/language/message.h"
#include "job/job.h"
#include "record/metrics.h"
#include "record/run_folder.h"

namespace stoker::diagnose {

/// Findings of one attempt. For a short run (fewer than 60 samples), only metrics that are NaN or infinite.
std::vector<Finding> usage_findings(const record::Attempt& attempt);

/// The samples of one node and the requested resources.
struct NodeUsage {
  int node = 0;
  std::string file;  ///< "system-0000.csv"
  record::MetricTable samples;
  record::MetricTable steps;  ///< of rank 0; without rows if there are no metrics
  job::Resources asked;
};
/// Findings of one node.
std::vector<Finding> node_usage_findings(const NodeUsage& use);

/// Waiting for data and communication in the steps of a rank; empty if negligible.
std::vector<Finding> step_findings(const std::string& file, const record::MetricTable& steps);

}  // namespace stoker::diagnose
