#include "job/site/find.h"

#include <algorithm>
#include <map>
#include <sys/stat.h>

#include "base/file.h"
#include "base/user.h"
#include "config/yaml.h"

namespace stoker::job {
namespace {

constexpr int kMaxSuccessors = 4;

Path first_folder(std::initializer_list<Path> candidates) {
  for (const Path& folder : candidates) {
    if (folder_exists(folder)) return folder.lexically_normal();
  }
  return {};
}

// A file that users can write does not count as the administrators'.
Status check_owner(const Path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return posix_error(file.string(), errno);
  if (info.st_uid == 0 && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return invalid("{}: ignored because it is not owned by root or is writable by others", file)
      .cure("chown root {0} && chmod go-w {0}", file);
}

// The files of both folders by name; the user's own file hides a shipped one of the same name.
std::map<std::string, Path> profile_files(const SiteSearchPath& places) {
  std::map<std::string, Path> files;
  for (const Path& folder : {places.shipped, places.own}) {
    const auto names = list_directory(folder);
    if (folder.empty() || !names.ok()) continue;
    for (const std::string& file : *names) {
      if (file.ends_with(".yaml")) files.insert_or_assign(file.substr(0, file.size() - 5), folder / file);
    }
  }
  return files;
}

Result<Site> load_profile(const std::string& name, const Path& file) {
  STOKER_ASSIGN_OR_RETURN(site, load_site(file));
  if (site.name != name) return invalid("{}: its name is '{}'", file, printable(site.name));
  return std::move(site);
}

bool belongs_to(const Site& site, const std::string& cluster, const std::string& host) {
  // A different cluster name means a different cluster, even if its host names match.
  if (!cluster.empty())
    return std::find(site.clusters.begin(), site.clusters.end(), cluster) != site.clusters.end();
  return std::any_of(site.hosts.begin(), site.hosts.end(),
                     [&](const std::string& pattern) { return matches_pattern(pattern, host); });
}

// Reading all profiles would dominate the time of a submission: reads only files that contain the cluster's
// name.
std::string detect_site(const std::map<std::string, Path>& files, const ClusterIdentity& identity) {
  const std::string cluster = to_lower(identity.cluster);
  for (const auto& [name, file] : files) {
    if (!cluster.empty()) {
      const auto text = read_file(file, 1_MiB);
      if (!text.ok() || to_lower(*text).find(cluster) == std::string::npos) continue;
    }
    const auto site = load_profile(name, file);
    if (site.ok() && belongs_to(*site, cluster, identity.host)) return name;
  }
  return "generic";
}

template <typename T>
void lower_to(std::optional<T>& value, const std::optional<T>& limit) {
  if (limit && (!value || *limit < *value)) value = limit;
}

std::string cluster_in(const Path& slurm_conf) {
  const auto text = read_file(slurm_conf, 4_MiB);
  if (!text.ok()) return "";
  for (std::string_view line : split(*text, '\n')) {
    line = trim(line);
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || to_lower(trim(line.substr(0, equals))) != "clustername") continue;
    std::string_view value = line.substr(equals + 1);
    return std::string(trim(value.substr(0, value.find('#'))));
  }
  return "";
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star =
      std::string_view::npos;  // the last *, and the position in the text after its current match
  std::size_t tried = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      tried = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++tried;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

SiteSearchPath site_search_path(const Path& program_folder, const slurm::Lookup& environment) {
  SiteSearchPath places{.enforced = "/etc/stoker/site.yaml", .own = {}, .shipped = {}};
  places.shipped =
      first_folder({program_folder / "../share/stoker/sites", program_folder / "../../../sites"});
  if (const auto config = environment("XDG_CONFIG_HOME"); config && config->starts_with('/')) {
    places.own = Path(*config) / "stoker/sites";
  } else if (const auto home = environment("HOME"); home && home->starts_with('/')) {
    places.own = Path(*home) / ".config/stoker/sites";
  }
  return places;
}

std::vector<ListedSite> list_sites(const SiteSearchPath& places) {
  std::vector<ListedSite> listed;
  for (const auto& [name, file] : profile_files(places)) {
    ListedSite& each = listed.emplace_back(ListedSite{.name = name, .file = file});
    auto site = load_profile(name, file);
    if (site.ok()) {
      each.site = std::move(*site);
    } else {
      each.problem = site.error();
    }
  }
  return listed;
}

ClusterIdentity detect_cluster(const slurm::Lookup& environment) {
  ClusterIdentity identity{.cluster = environment("SLURM_CLUSTER_NAME").value_or(""), .host = host_name()};
  if (!identity.cluster.empty()) return identity;
  if (const auto conf = environment("SLURM_CONF")) {
    identity.cluster = cluster_in(*conf);
  } else {
    for (const char* conf_file : {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"}) {
      if (identity.cluster.empty()) identity.cluster = cluster_in(conf_file);
    }
  }
  return identity;
}

Result<FoundSite> find_site(const SiteSearchPath& places, std::string_view name,
                            const ClusterIdentity& identity) {
  std::optional<Site> enforced;
  if (path_exists(places.enforced)) {
    STOKER_RETURN_IF_ERROR(check_owner(places.enforced));
    STOKER_ASSIGN_OR_RETURN(site, load_site(places.enforced));
    enforced = std::move(site);
    enforced->is_enforced = true;
  }
  const std::map<std::string, Path> files = profile_files(places);
  std::string wanted(name);
  if (wanted == "auto") wanted = enforced ? enforced->name : detect_site(files, identity);
  FoundSite result;
  const std::string requested_name = wanted;
  for (int i = 0; i < kMaxSuccessors; ++i) {
    const auto listed = files.find(wanted);
    if (listed == files.end() && enforced && enforced->name == wanted) return FoundSite{*enforced, ""};
    if (listed == files.end()) {
      std::vector<std::string_view> names;
      for (const auto& [each, file] : files) names.push_back(each);
      return not_found("site {}: unknown profile{}", printable(wanted), suggestion(wanted, names))
          .cure("stoker site list");
    }
    STOKER_ASSIGN_OR_RETURN(site, load_profile(listed->first, listed->second));
    result.site = std::move(site);
    if (!result.site.successor) break;
    result.requested_name = requested_name;
    wanted = *result.site.successor;
  }
  if (enforced) result.site = tighten(std::move(result.site), *enforced);
  return result;
}

Site tighten(Site site, const Site& enforced) {
  lower_to(site.limits.time, enforced.limits.time);
  lower_to(site.limits.jobs, enforced.limits.jobs);
  lower_to(site.limits.nodes, enforced.limits.nodes);
  lower_to(site.limits.array, enforced.limits.array);
  site.needs_account = site.needs_account || enforced.needs_account;
  if (enforced.account) site.account = enforced.account;
  if (enforced.account_command) site.account_command = enforced.account_command;
  for (const auto& [name, enforced_values] : enforced.partitions) {
    SitePartition& values = site.partitions[name];
    lower_to(values.time, enforced_values.time);
    lower_to(values.nodes, enforced_values.nodes);
    if (enforced_values.default_time) values.default_time = enforced_values.default_time;
    if (enforced_values.default_for) values.default_for = enforced_values.default_for;
    values.default_qos = enforced_values.default_qos;  // only the administrators' QoS override the limits
  }
  // A QoS may allow more than its partition, so with enforced rules only the QoS in that file do.
  std::map<std::string, SiteQos> qos = enforced.qos;
  for (auto& [name, enforced_values] : qos) {
    const auto values = site.qos.find(name);
    if (values == site.qos.end()) continue;
    lower_to(enforced_values.time, values->second.time);
    lower_to(enforced_values.nodes, values->second.nodes);
    lower_to(enforced_values.gpus, values->second.gpus);
    lower_to(enforced_values.jobs, values->second.jobs);
  }
  site.qos = std::move(qos);
  if (enforced.first_port) site.first_port = std::max(site.first_port.value_or(0), *enforced.first_port);
  lower_to(site.last_port, enforced.last_port);
  site.is_enforced = true;
  return site;
}

std::string transfer_node_of(const SiteSearchPath& places, std::string_view host) {
  const std::size_t at = host.rfind('@');
  const std::string name = to_lower(at == std::string_view::npos ? host : host.substr(at + 1));
  for (const ListedSite& listed : list_sites(places)) {
    if (!listed.site || !listed.site->transfer_host) continue;
    const std::vector<std::string>& hosts = listed.site->hosts;
    const bool is_there = std::any_of(hosts.begin(), hosts.end(), [&](const std::string& pattern) {
      return matches_pattern(to_lower(pattern), name);
    });
    if (is_there) return *listed.site->transfer_host;
  }
  return "";
}

}  // namespace stoker::job
