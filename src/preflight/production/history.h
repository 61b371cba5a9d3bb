// Facts of a job's past runs for the production checks. Internal to this folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dataset/manifest.h"
#include "preflight/production/production.h"
#include "record/capsule.h"
#include "record/hello/hello.h"
#include "record/metrics.h"
#include "record/points/points.h"
#include "record/run_folder.h"
#include "record/state.h"

namespace stoker::preflight {

struct PastRun {
  record::RunFolder folder;
  record::RunState state;
  record::Capsule capsule;
  int world_size = 1;

  /// The commit of a clean work tree; "" otherwise.
  std::string commit() const;
};

/// One entry of the job's data.
struct JobDataset {
  std::string name;
  Path source;
  std::optional<dataset::Manifest> manifest;
};

/// All inputs of the checks, collected once.
struct ProductionFacts {
  const job::Job& job;
  std::optional<job::Site> site;
  double now = 0;
  std::vector<PastRun> runs;  ///< with this name, newest first
  std::vector<JobDataset> data;
  std::optional<record::HelloRecord> hello;
  std::vector<record::LastValue> logged;      ///< metrics that the program of that attempt logged
  std::optional<record::MetricTable> steps;   ///< of the newest run's last attempt, rank 0
  std::optional<record::MetricTable> system;  ///< of node 0
  std::uint64_t checkpoints = 0;              ///< of the newest run

  bool has_gpus() const { return job.resources.gpus_per_node() > 0; }
  const PastRun* newest() const { return runs.empty() ? nullptr : &runs.front(); }
};

ProductionFacts collect_facts(const job::Job& job, const std::optional<job::Site>& site, double now);

/// The value of a variable for the ranks: from the job, otherwise from this process.
std::optional<std::string> rank_variable(const job::Job& job, const std::string& name);

}  // namespace stoker::preflight
