// `stoker check JOB --on-nodes`: runs the checks on the job's nodes. Called by check.cc.
#pragma once

#include <vector>

#include "base/finding.h"
#include "cli/output.h"
#include "job/job.h"
#include "netcheck/report.h"

namespace stoker::cli {

struct NodesCheck {
  netcheck::Report report;
  std::vector<Finding> findings;
};

/// Starts the job's ranks for a minute, without the job. Creates and removes a probe file in each folder that
/// the ranks will write to.
Result<NodesCheck> check_on_nodes(const job::Job& job, Output& out);

/// Prints the checks and a row per node.
void print_nodes(const NodesCheck& check, const Translator& words, Output& out);

/// The value of "nodes" in JSON, serialized.
std::string nodes_json(const NodesCheck& check, const Translator& words);

}  // namespace stoker::cli
