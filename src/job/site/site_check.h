// Checks a job's request against the profile of the site: of job files and of batch scripts written by users.
// Used by submission and checks. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/language/message.h"
#include "job/job.h"
#include "job/site/site.h"
#include "slurm/allocation.h"
#include "stoker/bytes.h"
#include "stoker/time.h"

namespace stoker::job {

/// Source of a request, which determines the names of its values and the form of a cure.
enum class RequestSource { job_file, batch_script };

/// A job's request to the cluster. Empty: not specified.
struct SiteRequest {
  RequestSource written = RequestSource::job_file;
  bool has_time = false;         ///< a time is specified, even "UNLIMITED"
  std::optional<Duration> time;  ///< of one job; in a chain, of each link
  bool is_chain = false;
  std::optional<std::uint64_t> nodes;
  std::optional<std::string> partition;   ///< comma-separated if several
  std::optional<std::string> constraint;  ///< a feature; may select a kind of node without a partition
  std::optional<std::string> qos;
  std::optional<std::string> account;
  bool has_gpus = false;  ///< at least one, even if their number per node is unknown
  std::uint64_t gpus_per_task = 0;
  std::optional<std::uint64_t> cpus_per_task;
  std::uint64_t tasks_per_node = 1;
  std::optional<std::uint64_t> gpus_per_node;
  std::string gpus_by = "resources.gpus_per_rank";  ///< the setting that requests them
  std::optional<ByteCount> memory_per_node;
  std::uint64_t jobs = 1;  ///< of the array
  /// Position of each setting, by its name in the source: "resources.time" in job.yaml:4:19, "--time" in
  /// train.sh:3.
  std::map<std::string, std::string, std::less<>> where;
};

/// The request of a job file; unset values come from SBATCH_PARTITION, SBATCH_QOS and SBATCH_ACCOUNT.
SiteRequest site_request(const Job& job, const slurm::Lookup& environment);

/// An option for sbatch.
struct GivenOption {
  std::string value;
  std::string where;  ///< "train.sh:3", or "--sbatch"
};
/// Looks up the effective option with that long name in a batch script.
using GivenOptions = std::function<std::optional<GivenOption>(std::string_view name)>;

/// The request of a batch script with the display name `script`; variables such as SBATCH_TIMELIMIT override
/// its options, as in sbatch.
SiteRequest site_request(const GivenOptions& options, const std::string& script,
                         const slurm::Lookup& environment);

/// Everything that this site forbids (Level::job) or advises against. The first piece of evidence is the
/// position, the second the source of the limit (where and when it was read).
std::vector<Finding> check_against_site(const SiteRequest& request, const Site& site);

}  // namespace stoker::job
