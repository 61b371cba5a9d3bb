#include "lab/processes.h"

#include <algorithm>
#include <map>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "lab/make/network.h"

namespace stoker::lab {
namespace {

struct ProcessInfo {
  pid_t parent = 0;
  std::string program;
  std::string mark;  // STOKER_LAB_MEMBER
  std::string node;  // STOKER_LAB_NODE
  std::string conf;  // SLURM_CONF
  std::string net;   // "net:[4026532000]"
};

std::string value_in(std::string_view environ, std::string_view name) {
  for (const std::string_view entry : split(environ, '\0')) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return std::string(entry.substr(name.size() + 1));
    }
  }
  return "";
}

bool read_process_info(const std::string& pid, ProcessInfo* info) {
  const auto stat = read_pseudo_file("/proc/" + pid + "/stat");
  if (!stat) return false;
  const std::size_t open = stat->find('(');
  const std::size_t close = stat->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 4 > stat->size()) return false;
  if ((*stat)[close + 2] == 'Z' || (*stat)[close + 2] == 'X') return false;
  info->program = stat->substr(open + 1, close - open - 1);
  const std::string_view rest = std::string_view(*stat).substr(close + 4);
  std::int64_t parent = 0;
  parse_number(rest.substr(0, rest.find(' ')), &parent);
  info->parent = static_cast<pid_t>(parent);
  if (const auto environ = read_pseudo_file("/proc/" + pid + "/environ")) {
    info->mark = value_in(*environ, "STOKER_LAB_MEMBER");
    info->node = value_in(*environ, "STOKER_LAB_NODE");
    info->conf = value_in(*environ, "SLURM_CONF");
  }
  std::error_code error;
  info->net = std::filesystem::read_symlink("/proc/" + pid + "/ns/net", error).string();
  return true;
}

std::map<pid_t, ProcessInfo> read_all_processes() {
  std::map<pid_t, ProcessInfo> all;
  const auto entries = list_directory("/proc");
  if (!entries) return all;
  for (const std::string& entry : *entries) {
    std::int64_t pid = 0;
    ProcessInfo info;
    if (parse_number(entry, &pid) && read_process_info(entry, &info))
      all[static_cast<pid_t>(pid)] = std::move(info);
  }
  return all;
}

// The lab's network namespaces, as named in /proc/PID/ns/net, with their nodes.
std::map<std::string, std::string> networks_of(const Path& folder) {
  std::map<std::string, std::string> networks;
  for (const std::string& name : namespaces_of(folder)) {
    struct stat status{};
    if (::stat(("/run/netns/" + name).c_str(), &status) != 0) continue;
    networks[format("net:[{}]", status.st_ino)] = name.substr(name.rfind('-') + 1);
  }
  return networks;
}

bool is_slurm_daemon(const std::string& program) {
  return program == "slurmctld" || program == "slurmd" || program == "slurmstepd" || program == "slurmdbd";
}

}  // namespace

std::vector<LabProcess> find_lab_processes(const Path& folder) {
  const std::map<pid_t, ProcessInfo> all = read_all_processes();
  const std::map<std::string, std::string> networks = networks_of(folder);
  const std::string mark = folder.string();
  const std::string conf = (folder / "etc/slurm.conf").string();
  std::set<pid_t> ancestors;
  for (pid_t pid = ::getpid(); pid > 0 && all.contains(pid) && ancestors.insert(pid).second;)
    pid = all.at(pid).parent;

  std::map<pid_t, std::string> found;  // pid and node
  for (const auto& [pid, info] : all) {
    const auto network = networks.find(info.net);
    if (network != networks.end()) {
      found[pid] = network->second;
    } else if (info.mark == mark || (info.conf == conf && is_slurm_daemon(info.program))) {
      found[pid] = info.mark == mark ? info.node : "";
    }
  }
  // Adds descendants whose environment is hidden; repeated, because a parent may have a higher pid.
  for (bool is_growing = true; is_growing;) {
    is_growing = false;
    for (const auto& [pid, info] : all) {
      if (found.contains(pid) || !found.contains(info.parent)) continue;
      found[pid] = found[info.parent];
      is_growing = true;
    }
  }
  std::vector<LabProcess> lab_processes;
  for (const auto& [pid, node] : found) {
    if (ancestors.contains(pid)) continue;
    lab_processes.push_back({pid, all.at(pid).parent, all.at(pid).program, node});
  }
  return lab_processes;
}

std::vector<LabProcess> lab_processes(const Lab& lab) { return find_lab_processes(lab.folder); }

}  // namespace stoker::lab
