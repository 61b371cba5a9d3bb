// `stoker check JOB --on-nodes`: the same questions asked where the ranks will be. Called by the command's
// own file.
#pragma once

#include <vector>

#include "base/finding.h"
#include "cli/output.h"
#include "job/job.h"
#include "rank/hello/report.h"

namespace stoker::cli {

struct NodesCheck {
  rank::hello::Report report;
  std::vector<Finding> findings;
};

/// Starts the job's ranks for a minute, without the job. Puts a file into each folder that the ranks will
/// write to, and takes it away again. What is found is told in the language of `words`.
Result<NodesCheck> look_from_nodes(const job::Job& job, const Words& words, Output& out);

/// The rungs that were climbed and a row for each node.
void print_nodes(const NodesCheck& check, Output& out);

/// As the value of "nodes" in JSON, as text.
std::string nodes_json(const NodesCheck& check);

}  // namespace stoker::cli
