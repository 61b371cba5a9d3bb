// What the runs of a job's name left, as far as the questions of production need it. Internal to this folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "explain/production/production.h"
#include "format/manifest.h"
#include "record/capsule.h"
#include "record/hello/hello.h"
#include "record/metrics.h"
#include "record/run_folder.h"
#include "record/state.h"

namespace stoker::explain {

struct PastRun {
  record::RunFolder folder;
  record::RunState state;
  record::Capsule capsule;
  int world_size = 1;

  /// The commit it ran, clean; "" without one.
  std::string commit() const;
};

/// One entry of the job's data.
struct LookedAtData {
  std::string name;
  Path source;
  std::optional<formats::Manifest> manifest;
};

/// All that is looked at, once.
struct ProductionFacts {
  const job::Job& job;
  std::optional<job::Site> site;
  double now = 0;
  Words words = {};           ///< that points are told in
  std::vector<PastRun> runs;  ///< of this name, the newest first
  std::vector<LookedAtData> data;
  std::optional<record::HelloRecord> hello;
  std::optional<record::MetricTable> steps;   ///< of the newest run's last attempt, rank 0
  std::optional<record::MetricTable> system;  ///< of its node 0
  std::uint64_t checkpoints = 0;              ///< that the newest run left

  bool has_gpus() const { return job.resources.gpus_per_node() > 0; }
  const PastRun* newest() const { return runs.empty() ? nullptr : &runs.front(); }
};

ProductionFacts look_at_history(const job::Job& job, const std::optional<job::Site>& site, double now,
                                const Words& words);

/// The value of an environment's variable for the ranks: the job's, else this process's.
std::optional<std::string> rank_variable(const job::Job& job, const std::string& name);

// The questions, by what they look at.
ProductionPoint data_sharded(const ProductionFacts& facts);
ProductionPoint data_hashed(const ProductionFacts& facts);
ProductionPoint data_of_run(const ProductionFacts& facts);
ProductionPoint cache_purged(const ProductionFacts& facts);
ProductionPoint use_measured(const ProductionFacts& facts);
ProductionPoint checkpoints_placed(const ProductionFacts& facts);
ProductionPoint runs_tracked(const ProductionFacts& facts);
ProductionPoint environment_frozen(const ProductionFacts& facts);
ProductionPoint all_reduced(const ProductionFacts& facts);
ProductionPoint nccl_quiet(const ProductionFacts& facts);
ProductionPoint interface_chosen(const ProductionFacts& facts);
ProductionPoint scaling_documented(const ProductionFacts& facts);
ProductionPoint baseline_versioned(const ProductionFacts& facts);

}  // namespace stoker::explain
