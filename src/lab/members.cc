#include "lab/members.h"

#include <algorithm>
#include <map>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "lab/daemons.h"
#include "lab/make/network.h"

namespace stoker::lab {
namespace {

struct Seen {
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

bool look_at(const std::string& pid, Seen* seen) {
  const auto stat = read_pseudo_file("/proc/" + pid + "/stat");
  if (!stat) return false;
  const std::size_t open = stat->find('(');
  const std::size_t close = stat->rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 4 > stat->size()) return false;
  if ((*stat)[close + 2] == 'Z' || (*stat)[close + 2] == 'X') return false;
  seen->program = stat->substr(open + 1, close - open - 1);
  const std::string_view rest = std::string_view(*stat).substr(close + 4);
  std::int64_t parent = 0;
  parse_number(rest.substr(0, rest.find(' ')), &parent);
  seen->parent = static_cast<pid_t>(parent);
  if (const auto environ = read_pseudo_file("/proc/" + pid + "/environ")) {
    seen->mark = value_in(*environ, "STOKER_LAB_MEMBER");
    seen->node = value_in(*environ, "STOKER_LAB_NODE");
    seen->conf = value_in(*environ, "SLURM_CONF");
  }
  std::error_code error;
  seen->net = std::filesystem::read_symlink("/proc/" + pid + "/ns/net", error).string();
  return true;
}

std::map<pid_t, Seen> look_at_all() {
  std::map<pid_t, Seen> all;
  const auto entries = list_directory("/proc");
  if (!entries) return all;
  for (const std::string& entry : *entries) {
    std::int64_t pid = 0;
    Seen seen;
    if (parse_number(entry, &pid) && look_at(entry, &seen)) all[static_cast<pid_t>(pid)] = std::move(seen);
  }
  return all;
}

// The network namespaces of the lab as /proc/PID/ns/net names them, and the node of each.
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

std::vector<Member> find_members(const Path& folder) {
  const std::map<pid_t, Seen> all = look_at_all();
  const std::map<std::string, std::string> networks = networks_of(folder);
  const std::string mark = folder.string();
  const std::string conf = (folder / "etc/slurm.conf").string();
  std::set<pid_t> ancestors;
  for (pid_t pid = ::getpid(); pid > 0 && all.contains(pid) && ancestors.insert(pid).second;)
    pid = all.at(pid).parent;

  std::map<pid_t, std::string> found;  // pid and node
  for (const auto& [pid, seen] : all) {
    const auto network = networks.find(seen.net);
    if (network != networks.end()) {
      found[pid] = network->second;
    } else if (seen.mark == mark || (seen.conf == conf && is_slurm_daemon(seen.program))) {
      found[pid] = seen.mark == mark ? seen.node : "";
    }
  }
  // Descendants that hide their environment belong to it too; repeated, since a parent may have the higher
  // pid.
  for (bool is_growing = true; is_growing;) {
    is_growing = false;
    for (const auto& [pid, seen] : all) {
      if (found.contains(pid) || !found.contains(seen.parent)) continue;
      found[pid] = found[seen.parent];
      is_growing = true;
    }
  }
  std::vector<Member> members;
  for (const auto& [pid, node] : found) {
    if (ancestors.contains(pid)) continue;
    members.push_back({pid, all.at(pid).parent, all.at(pid).program, node});
  }
  return members;
}

std::vector<Member> members(const Lab& lab) { return find_members(lab.folder); }

}  // namespace stoker::lab
