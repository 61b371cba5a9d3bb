// What can be known about a job before it runs: do its data, programs and folders exist, do its ranks fit.
// Used by `stoker check`. Looks, changes nothing. Thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/finding.h"
#include "base/language/words.h"
#include "base/status.h"
#include "job/job.h"
#include "job/site/site.h"
#include "slurm/allocation.h"

namespace stoker::explain {

/// Where a job would run.
struct Surroundings {
  std::uint32_t cores = 1;  ///< this process may use
  std::string search_path;  ///< PATH
  Path program_folder;      ///< of stoker itself, where stoker-train lies too
  std::optional<slurm::Allocation> allocation;
  bool has_queue = false;         ///< Slurm is set up here: `stoker submit` gets what this machine has not
  std::optional<job::Site> site;  ///< the cluster, when it is known
};

/// This process's surroundings.
Result<Surroundings> look_around();

/// One thing that is as it should be: "data", "train: packed, 5 000 samples".
struct Fact {
  std::string name;
  std::string text;
};

struct Preflight {
  std::vector<Fact> facts;
  std::vector<Finding> findings;

  /// Nothing found would lose the job.
  bool is_ready() const;
};

/// The folder itself, or the nearest one above it that is there and in which it would be made.
Path standing(const Path& folder);

/// Evidence of each finding names the place in the job file that decided.
Preflight preflight(const job::Job& job, const Surroundings& around, const Words& words = Words());

}  // namespace stoker::explain
