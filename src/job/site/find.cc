#include "job/site/find.h"

#include <algorithm>
#include <array>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "config/yaml.h"

namespace stoker::job {
namespace {

constexpr int kMostSuccessors = 4;

Path first_folder(std::initializer_list<Path> candidates) {
  for (const Path& folder : candidates) {
    if (folder_exists(folder)) return folder.lexically_normal();
  }
  return {};
}

// What users may have written is no word of the administrators.
Status check_owner(const Path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return posix_error(file.string(), errno);
  if (info.st_uid == 0 && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return invalid("{}: belongs to others than root, or others may write it, so it does not count", file)
      .cure("chown root {0} && chmod go-w {0}", file);
}

// The files of both folders by name; of two with one name the user's own.
std::map<std::string, Path> profile_files(const SitePlaces& places) {
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
  OK_OR_RETURN(site, load_site(file));
  if (site.name != name) return invalid("{}: its name is '{}'", file, printable(site.name));
  return std::move(site);
}

bool belongs_to(const Site& site, const std::string& cluster, const std::string& host) {
  // A cluster of another name is another cluster, however its hosts are called.
  if (!cluster.empty())
    return std::find(site.clusters.begin(), site.clusters.end(), cluster) != site.clusters.end();
  return std::any_of(site.hosts.begin(), site.hosts.end(),
                     [&](const std::string& pattern) { return matches_pattern(pattern, host); });
}

// Reading all profiles takes longer than all else of a submission: only those are read that name the cluster.
std::string name_by_signs(const std::map<std::string, Path>& files, const ClusterSigns& signs) {
  const std::string cluster = to_lower(signs.cluster);
  for (const auto& [name, file] : files) {
    if (!cluster.empty()) {
      const auto text = read_file(file, 1_MiB);
      if (!text.ok() || to_lower(*text).find(cluster) == std::string::npos) continue;
    }
    const auto site = load_profile(name, file);
    if (site.ok() && belongs_to(*site, cluster, signs.host)) return name;
  }
  return "generic";
}

template <typename T>
void take_less(std::optional<T>& value, const std::optional<T>& limit) {
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

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;  // the last one, and where the text behind it was tried from
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

SitePlaces site_places(const Path& program_folder, const slurm::Lookup& environment) {
  SitePlaces places{.enforced = "/etc/stoker/site.yaml", .own = {}, .shipped = {}};
  places.shipped =
      first_folder({program_folder / "../share/stoker/sites", program_folder / "../../../sites"});
  if (const auto config = environment("XDG_CONFIG_HOME"); config && config->starts_with('/')) {
    places.own = Path(*config) / "stoker/sites";
  } else if (const auto home = environment("HOME"); home && home->starts_with('/')) {
    places.own = Path(*home) / ".config/stoker/sites";
  }
  return places;
}

std::vector<ListedSite> list_sites(const SitePlaces& places) {
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

ClusterSigns look_for_cluster(const slurm::Lookup& environment) {
  ClusterSigns signs{.cluster = environment("SLURM_CLUSTER_NAME").value_or(""), .host = host_name()};
  if (!signs.cluster.empty()) return signs;
  if (const auto conf = environment("SLURM_CONF")) {
    signs.cluster = cluster_in(*conf);
  } else {
    for (const char* conf_file : {"/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"}) {
      if (signs.cluster.empty()) signs.cluster = cluster_in(conf_file);
    }
  }
  return signs;
}

Result<FoundSite> find_site(const SitePlaces& places, std::string_view name, const ClusterSigns& signs) {
  std::optional<Site> enforced;
  if (path_exists(places.enforced)) {
    RETURN_IF_ERROR(check_owner(places.enforced));
    OK_OR_RETURN(site, load_site(places.enforced));
    enforced = std::move(site);
    enforced->is_enforced = true;
  }
  const std::map<std::string, Path> files = profile_files(places);
  std::string wanted(name);
  if (wanted == "auto") wanted = enforced ? enforced->name : name_by_signs(files, signs);
  FoundSite result;
  const std::string asked_for = wanted;
  for (int i = 0; i < kMostSuccessors; ++i) {
    const auto listed = files.find(wanted);
    if (listed == files.end() && enforced && enforced->name == wanted) return FoundSite{*enforced, ""};
    if (listed == files.end()) {
      std::vector<std::string_view> names;
      for (const auto& [each, file] : files) names.push_back(each);
      return not_found("site {}: there is no such profile{}", printable(wanted), suggestion(wanted, names))
          .cure("stoker site list");
    }
    OK_OR_RETURN(site, load_profile(listed->first, listed->second));
    result.site = std::move(site);
    if (!result.site.successor) break;
    result.asked_for = asked_for;
    wanted = *result.site.successor;
  }
  if (enforced) result.site = tighten(std::move(result.site), *enforced);
  return result;
}

Site tighten(Site site, const Site& enforced) {
  take_less(site.limits.time, enforced.limits.time);
  take_less(site.limits.jobs, enforced.limits.jobs);
  take_less(site.limits.nodes, enforced.limits.nodes);
  take_less(site.limits.array, enforced.limits.array);
  site.needs_account = site.needs_account || enforced.needs_account;
  if (enforced.account) site.account = enforced.account;
  if (enforced.account_command) site.account_command = enforced.account_command;
  for (const auto& [name, theirs] : enforced.partitions) {
    SitePartition& ours = site.partitions[name];
    take_less(ours.time, theirs.time);
    take_less(ours.nodes, theirs.nodes);
    if (theirs.default_time) ours.default_time = theirs.default_time;
  }
  // A QoS may allow more than its partition, so under rules of theirs only those they name do.
  std::map<std::string, SiteQos> qos = enforced.qos;
  for (auto& [name, theirs] : qos) {
    const auto ours = site.qos.find(name);
    if (ours == site.qos.end()) continue;
    take_less(theirs.time, ours->second.time);
    take_less(theirs.nodes, ours->second.nodes);
  }
  site.qos = std::move(qos);
  if (enforced.first_port) site.first_port = std::max(site.first_port.value_or(0), *enforced.first_port);
  take_less(site.last_port, enforced.last_port);
  site.is_enforced = true;
  return site;
}

}  // namespace stoker::job
