// Lists site profiles and selects the current cluster's. Order: the administrators' file, the user's own
// files, the files shipped with Stoker. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/site/site.h"
#include "slurm/allocation.h"
#include "stoker/status.h"

namespace stoker::job {

/// Locations of profiles. An empty path: none.
struct SiteSearchPath {
  Path enforced;  ///< one file: /etc/stoker/site.yaml, must be owned by root
  Path own;       ///< a folder: ~/.config/stoker/sites
  Path shipped;   ///< a folder: ../share/stoker/sites next to the command, or sites/ in the sources
};
/// The locations for a command in `program_folder`.
SiteSearchPath site_search_path(const Path& program_folder, const slurm::Lookup& environment);

/// A profile in a listing; `problem` explains why it cannot be read.
struct ListedSite {
  std::string name;
  Path file;
  std::optional<Site> site;
  Status problem;
};
/// Sorted by name; the user's own profile hides a shipped one of the same name.
std::vector<ListedSite> list_sites(const SiteSearchPath& places);

/// Identifies a cluster.
struct ClusterIdentity {
  std::string cluster;  ///< ClusterName; "" if Slurm is not configured
  std::string host;
};
/// Of this machine: SLURM_CLUSTER_NAME, else the ClusterName in slurm.conf ($SLURM_CONF, /etc/slurm), and the
/// host name. Runs no command.
ClusterIdentity detect_cluster(const slurm::Lookup& environment);

/// The selected profile.
struct FoundSite {
  Site site;
  std::string requested_name;  ///< the requested name, if the site replaced the one of that name
};
/// The site of that name or its successor; "auto": the site of this cluster, or "generic" if it is unknown.
/// Other files cannot allow what the administrators' file forbids. NotFound lists the names.
Result<FoundSite> find_site(const SiteSearchPath& places, std::string_view name,
                            const ClusterIdentity& identity);

/// The stricter value of both for every limit, otherwise the value of `site`.
Site tighten(Site site, const Site& enforced);

/// The transfer node of the site whose login nodes the host is one of: "login.cluster" or
/// "ada@login.cluster". "" without one.
std::string transfer_node_of(const SiteSearchPath& places, std::string_view host);

/// Whether `text` matches the pattern, in which * matches any characters.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace stoker::job
