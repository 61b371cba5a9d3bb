// A site profile: properties and limits of a cluster, from sites/*.yaml. Read by `stoker site` and by the
// checks before a submission. Thread-compatible values. Format: docs/formats/site.md.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::job {

/// Where and when values were read.
struct SiteSource {
  std::string url;
  std::string date;  ///< "2026-04-18"

  friend bool operator==(const SiteSource&, const SiteSource&) = default;
};

/// Jobs that get a partition if they request none.
enum class DefaultFor { all, gpu, cpu };

constexpr std::array<std::string_view, 3> names_of(DefaultFor) { return {"all", "gpu", "cpu"}; }

/// A partition. Empty: not known.
struct SitePartition {
  std::optional<Duration> time;            ///< maximum duration of a job
  std::optional<Duration> default_time;    ///< for jobs that request none
  std::optional<std::uint64_t> nodes;      ///< maximum number per job
  std::optional<std::string> default_qos;  ///< for jobs that request none; a key of Site::qos
  std::optional<DefaultFor> default_for;
  std::optional<std::string> what;
  std::string from;

  friend bool operator==(const SitePartition&, const SitePartition&) = default;
};

/// A quality of service, whose limits override the partitions' if a job requests it or gets it by default.
struct SiteQos {
  std::vector<std::string> partitions;  ///< partitions in which it is allowed; empty: not known
  std::optional<Duration> time;
  std::optional<std::uint64_t> nodes;
  std::optional<std::uint64_t> gpus;  ///< maximum number per job
  std::optional<std::uint64_t> jobs;  ///< per user, pending and running
  std::optional<std::string> what;
  std::string from;

  friend bool operator==(const SiteQos&, const SiteQos&) = default;
};

/// One kind of node.
struct SiteNode {
  std::optional<std::string> partition;
  std::vector<std::string> options;  ///< sbatch options that request it; N is a placeholder for a number
  std::optional<std::string> gpu;
  std::optional<std::uint64_t> gpus;
  std::optional<std::uint64_t> cores;
  std::optional<std::uint64_t> cores_per_gpu;  ///< a fair share
  std::optional<ByteCount> memory;             ///< available to jobs
  std::optional<ByteCount> memory_per_gpu;     ///< a fair share
  std::optional<ByteCount> local_disk;
  std::string from;

  friend bool operator==(const SiteNode&, const SiteNode&) = default;
};

/// A file system.
struct SiteStorage {
  std::optional<std::string> path;  ///< may contain environment variables
  std::optional<ByteCount> quota;
  std::optional<std::uint64_t> files;
  std::optional<std::uint64_t> purge_days;  ///< unused files are deleted after this time
  std::optional<bool> shared;               ///< of `cache`: users may copy from the caches of their peers
  std::optional<std::string> what;
  std::string from;

  friend bool operator==(const SiteStorage&, const SiteStorage&) = default;
};

/// Limits of every job.
struct SiteLimits {
  std::optional<Duration> time;
  std::optional<Duration> shortest;    ///< recommended minimum duration
  std::optional<std::uint64_t> jobs;   ///< per user, pending and running
  std::optional<std::uint64_t> nodes;  ///< per job
  std::optional<std::uint64_t> array;  ///< MaxArraySize: one more than the highest index of an array

  friend bool operator==(const SiteLimits&, const SiteLimits&) = default;
};

/// A recommendation of the site's staff, with an alternative.
struct SiteOpinion {
  std::string what;
  std::optional<std::string> cure;
  std::string from;

  friend bool operator==(const SiteOpinion&, const SiteOpinion&) = default;
};

struct Site {
  std::string name;
  std::string what;
  std::optional<std::string> successor;  ///< the site that replaces it
  std::map<std::string, SiteSource> sources;
  std::vector<std::string> clusters;  ///< ClusterName in slurm.conf, in lower case
  std::vector<std::string> hosts;     ///< patterns of host names, with *
  SiteLimits limits;
  std::map<std::string, SitePartition> partitions;
  std::map<std::string, SiteQos> qos;
  std::map<std::string, SiteNode> nodes;
  std::map<std::string, SiteStorage> storage;
  bool needs_account = false;
  std::optional<std::string> account;          ///< form of account names
  std::optional<std::string> account_command;  ///< command that lists the user's accounts
  std::optional<std::string> quota_command;
  std::vector<std::string> interfaces;  ///< network interfaces between nodes, best first
  std::optional<std::uint64_t> first_port;
  std::optional<std::uint64_t> last_port;
  std::optional<std::string> transfer_host;  ///< node for copies from and to other machines
  std::optional<bool> has_internet;          ///< on compute nodes
  std::optional<std::string> module_system;  ///< "lmod" or "environment-modules"
  std::vector<std::string> python_modules;
  std::map<std::string, SiteOpinion> opinions;
  std::map<std::string, std::string> from;  ///< sources of the other groups: "limits", "network", ...
  Path file;                                ///< file it was read from; "" for a generated one
  bool is_enforced = false;  ///< from a file of the administrators, whose limits cannot be relaxed

  friend bool operator==(const Site&, const Site&) = default;
};

/// Reads the text of a site file. Invalid lists up to ten errors, each with path:line:column and the line.
Result<Site> read_site(const std::string& name, std::string_view text);
/// Reads a site file. NotFound if it does not exist.
Result<Site> load_site(const Path& file);

/// The site as the text of a file that reads back as an equal site.
std::string site_text(const Site& site);

}  // namespace stoker::job
