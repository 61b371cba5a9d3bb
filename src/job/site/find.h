// Which site profiles there are, and which one is here. Files of the administrators first, then the user's
// own, then those that come with Stoker. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "job/site/site.h"
#include "slurm/allocation.h"

namespace stoker::job {

/// Where profiles lie. An empty path: none.
struct SitePlaces {
  Path enforced;  ///< one file: /etc/stoker/site.yaml, of root alone
  Path own;       ///< a folder: ~/.config/stoker/sites
  Path shipped;   ///< a folder: ../share/stoker/sites beside the command, or sites/ of the sources
};
/// The places for a command that lies in `program_folder`.
SitePlaces site_places(const Path& program_folder, const slurm::Lookup& environment);

/// A profile that a listing found; `problem` says why it cannot be read.
struct ListedSite {
  std::string name;
  Path file;
  std::optional<Site> site;
  Status problem;
};
/// By name; of two with one name the user's own.
std::vector<ListedSite> list_sites(const SitePlaces& places);

/// By what a cluster is known.
struct ClusterSigns {
  std::string cluster;  ///< ClusterName; "" where no Slurm is set up
  std::string host;
};
/// Of this machine: SLURM_CLUSTER_NAME, else the ClusterName in slurm.conf ($SLURM_CONF, /etc/slurm); the
/// host's name. Asks nobody.
ClusterSigns look_for_cluster(const slurm::Lookup& environment);

/// A profile that counts.
struct FoundSite {
  Site site;
  std::string asked_for;  ///< the name by which it was asked for, when the site took that one's place
};
/// The site of that name, or the one that took its place; "auto": the one these signs belong to, and
/// "generic" when they belong to none. What the administrators' file forbids no other file can allow.
/// NotFound lists the names.
Result<FoundSite> find_site(const SitePlaces& places, std::string_view name, const ClusterSigns& signs);

/// The stricter of both in everything that limits a job, else as `site` says.
Site tighten(Site site, const Site& enforced);

/// Whether `text` is as the pattern says, where * stands for any letters.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace stoker::job
