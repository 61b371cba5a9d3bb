// A site profile: what a cluster is and allows, as sites/*.yaml tell it. Read by `stoker site`, and by what
// checks a job before it is submitted. Thread-compatible values. Format: docs/formats/site.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/text.h"
#include "base/time.h"

namespace stoker::job {

/// Where values come from, and when they were read there.
struct SiteSource {
  std::string url;
  std::string date;  ///< "2026-04-18"

  friend bool operator==(const SiteSource&, const SiteSource&) = default;
};

/// A partition that jobs name. Empty: not known.
struct SitePartition {
  std::optional<Duration> time;          ///< the longest a job may last
  std::optional<Duration> default_time;  ///< what it gets when it does not say
  std::optional<std::uint64_t> nodes;    ///< the most a job may have
  std::optional<std::string> what;
  std::string from;

  friend bool operator==(const SitePartition&, const SitePartition&) = default;
};

/// A quality of service, whose limits count in place of its partitions' when a job names it.
struct SiteQos {
  std::vector<std::string> partitions;  ///< in which it can be asked for; empty: not known
  std::optional<Duration> time;
  std::optional<std::uint64_t> nodes;
  std::optional<std::string> what;
  std::string from;

  friend bool operator==(const SiteQos&, const SiteQos&) = default;
};

/// One kind of node.
struct SiteNode {
  std::optional<std::string> partition;
  std::vector<std::string> options;  ///< for sbatch, by which it is got; N stands for a count
  std::optional<std::string> gpu;
  std::optional<std::uint64_t> gpus;
  std::optional<std::uint64_t> cores;
  std::optional<std::uint64_t> cores_per_gpu;  ///< a fair share
  std::optional<ByteCount> memory;             ///< that jobs can have
  std::optional<ByteCount> memory_per_gpu;     ///< a fair share
  std::optional<ByteCount> local_disk;
  std::string from;

  friend bool operator==(const SiteNode&, const SiteNode&) = default;
};

/// A place for files.
struct SiteStorage {
  std::optional<std::string> path;  ///< may name variables of the environment
  std::optional<ByteCount> quota;
  std::optional<std::uint64_t> files;
  std::optional<std::uint64_t> purge_days;  ///< what nobody touched for so long is removed
  std::optional<std::string> what;
  std::string from;

  friend bool operator==(const SiteStorage&, const SiteStorage&) = default;
};

/// What holds for every job.
struct SiteLimits {
  std::optional<Duration> time;
  std::optional<Duration> shortest;    ///< shorter jobs are a burden there
  std::optional<std::uint64_t> jobs;   ///< of one user, waiting and running
  std::optional<std::uint64_t> nodes;  ///< of one job
  std::optional<std::uint64_t> array;  ///< MaxArraySize: the highest index of an array is one less

  friend bool operator==(const SiteLimits&, const SiteLimits&) = default;
};

/// A strong view of the site's staff, and what to do in place of it.
struct SiteOpinion {
  std::string what;
  std::optional<std::string> cure;
  std::string from;

  friend bool operator==(const SiteOpinion&, const SiteOpinion&) = default;
};

struct Site {
  std::string name;
  std::string what;
  std::optional<std::string> successor;  ///< the site that took its place
  std::map<std::string, SiteSource> sources;
  std::vector<std::string> clusters;  ///< ClusterName of its slurm.conf, in lower case
  std::vector<std::string> hosts;     ///< patterns with * of its hosts' names
  SiteLimits limits;
  std::map<std::string, SitePartition> partitions;
  std::map<std::string, SiteQos> qos;
  std::map<std::string, SiteNode> nodes;
  std::map<std::string, SiteStorage> storage;
  bool needs_account = false;
  std::optional<std::string> account;          ///< what accounts look like
  std::optional<std::string> account_command;  ///< lists those one has
  std::optional<std::string> quota_command;
  std::vector<std::string> interfaces;  ///< network interfaces between nodes, the best first
  std::optional<std::uint64_t> first_port;
  std::optional<std::uint64_t> last_port;
  std::optional<bool> has_internet;          ///< on compute nodes
  std::optional<std::string> module_system;  ///< "lmod" or "environment-modules"
  std::vector<std::string> python_modules;
  std::map<std::string, SiteOpinion> opinions;
  std::map<std::string, std::string> from;  ///< the source of the other groups: "limits", "network", ...
  Path file;                                ///< where it was read; "" for one that was made
  bool is_enforced = false;  ///< from a file of the administrators, whose limits nobody can loosen

  friend bool operator==(const Site&, const Site&) = default;
};

/// Reads a site file's text. Invalid lists up to ten mistakes, each with path:line:column and the line.
Result<Site> read_site(const std::string& name, std::string_view text);
/// Reads a site file. NotFound without it.
Result<Site> load_site(const Path& file);

/// The site as a file that reads back as the same one.
std::string site_text(const Site& site);

}  // namespace stoker::job
