#include "lab/launch.h"

#include <algorithm>
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <signal.h>
#include <system_error>
#include <unistd.h>

#include "base/file.h"
#include "lab/make/tools.h"

namespace stoker::lab {
namespace {

Environment daemon_environment(const Lab& lab, const Daemon& daemon) {
  Environment environment = {{"PATH", environment_value("PATH").value_or("/usr/bin:/bin")},
                             {"SLURM_CONF", lab.slurm_conf().string()},
                             {"STOKER_LAB_MEMBER", lab.folder.string()}};
  if (!daemon.node.empty()) environment.emplace_back("STOKER_LAB_NODE", daemon.node);
  environment.insert(environment.end(), daemon.extra.begin(), daemon.extra.end());
  return environment;
}

// setsid, nsenter and taskset exec the next program, so the pid does not change.
std::vector<std::string> wrapped(const Daemon& daemon) {
  std::vector<std::string> argv = {find_tool("setsid")};
  if (daemon.core >= 0) {
    argv.insert(argv.end(), {find_tool("taskset"), "--cpu-list", std::to_string(daemon.core)});
  }
  if (daemon.holder != 0) {
    argv.insert(argv.end(), {find_tool("nsenter"), "--target", std::to_string(daemon.holder), "--mount",
                             "--uts", "--net", "--wdns=/", "--"});
  }
  argv.insert(argv.end(), daemon.argv.begin(), daemon.argv.end());
  argv[argv.size() - daemon.argv.size()] = find_tool(daemon.argv[0]);
  return argv;
}

}  // namespace

Result<pid_t> launch(const Lab& lab, const Daemon& daemon) {
  STOKER_ASSIGN_OR_RETURN(log, File::open_append(lab.log_folder() / (daemon.name + ".out")));
  Command command;
  command.argv = wrapped(daemon);
  command.environment = daemon_environment(lab, daemon);
  command.directory = "/";
  command.stdout_fd = command.stderr_fd = log.fd();
  STOKER_ASSIGN_OR_RETURN(child, Child::spawn(command));
  return child.pid();
}

std::string last_log_line(const Lab& lab, std::string_view daemon) {
  for (const char* ending : {"out", "log"}) {
    const auto text = read_file(lab.log_folder() / format("{}.{}", daemon, std::string_view(ending)));
    if (!text) continue;
    const std::string_view content = trim(*text);
    if (!content.empty()) return printable(content.substr(content.rfind('\n') + 1));
  }
  return "";
}

Status ended_early(const Lab& lab, const StartingDaemon& daemon) {
  const std::string words = last_log_line(lab, daemon.name);
  return unavailable("{}: {} exited during start{}", lab.name, daemon.name,
                     words.empty() ? "" : ": " + words);
}

Status startup_timeout(const Lab& lab, const StartingDaemon& daemon) {
  const std::string words = last_log_line(lab, daemon.name);
  return timeout("{}: {} does not answer{}", lab.name, daemon.name,
                 words.empty() ? "" : format(" (last log line: {})", words));
}

bool is_running(pid_t pid) {
  if (pid <= 0) return false;
  // The first thread of a killed process becomes a zombie before the last one has closed its sockets.
  std::error_code error;
  const std::filesystem::directory_iterator threads(format("/proc/{}/task", pid), error);
  if (!error && std::distance(begin(threads), end(threads)) > 1) return true;
  const auto stat = read_pseudo_file(format("/proc/{}/stat", pid));
  if (!stat) return false;
  // "pid (comm) S ..."; comm may contain any character.
  const std::size_t end = stat->rfind(')');
  return end != std::string::npos && end + 2 < stat->size() && (*stat)[end + 2] != 'Z' &&
         (*stat)[end + 2] != 'X';
}

}  // namespace stoker::lab
