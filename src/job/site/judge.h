// What a job asks of a cluster, held against the site's profile: of job files, and of batch scripts that
// people wrote. Used by what submits and what checks. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/finding.h"
#include "base/language/words.h"
#include "base/time.h"
#include "job/job.h"
#include "job/site/site.h"
#include "slurm/allocation.h"

namespace stoker::job {

/// Where a request is written down: what its values are called there, and how a cure is put.
enum class Written { job_file, batch_script };

/// What a job asks of the cluster. Empty: it does not say.
struct SiteRequest {
  Written written = Written::job_file;
  bool has_time = false;         ///< it says one, if only "UNLIMITED"
  std::optional<Duration> time;  ///< of one job; in a chain of each link
  bool is_chain = false;
  std::optional<std::uint64_t> nodes;
  std::optional<std::string> partition;  ///< several with commas between them
  std::optional<std::string> qos;
  std::optional<std::string> account;
  std::uint64_t gpus_per_task = 0;
  std::optional<std::uint64_t> cpus_per_task;
  std::uint64_t tasks_per_node = 1;
  std::optional<std::uint64_t> gpus_per_node;
  std::string gpus_by = "resources.gpus_per_rank";  ///< what asks for them there
  std::optional<ByteCount> memory_per_node;
  std::uint64_t jobs = 1;  ///< of the array
  /// Where each stands, by its name there: "resources.time" in job.yaml:4:19, "--time" in train.sh:3.
  std::map<std::string, std::string, std::less<>> where;
};

/// Of a job file; what it leaves open SBATCH_PARTITION, SBATCH_QOS and SBATCH_ACCOUNT say.
SiteRequest site_request(const Job& job, const slurm::Lookup& environment);

/// An option for sbatch.
struct GivenOption {
  std::string value;
  std::string where;  ///< "train.sh:3", or "--sbatch"
};
/// The option of that long name that counts in a batch script.
using GivenOptions = std::function<std::optional<GivenOption>(std::string_view name)>;

/// Of a batch script that people call `script`: a variable such as SBATCH_TIMELIMIT wins over its options, as
/// with sbatch.
SiteRequest site_request(const GivenOptions& options, const std::string& script,
                         const slurm::Lookup& environment);

/// What of it this site does not allow (Level::job) or advises against. The first piece of evidence names the
/// place, the second the source of the limit (where it is read, and when that was done).
std::vector<Finding> judge_site(const SiteRequest& request, const Site& site, const Words& words = Words());

}  // namespace stoker::job
