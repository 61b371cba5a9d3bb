#include "lab/make/tools.h"

#include <algorithm>
#include <unistd.h>

namespace stoker::lab {
namespace {

struct Tool {
  std::string_view program;
  std::string_view package;
  bool (*is_needed)(const Options&);
};

bool always(const Options&) { return true; }
bool in_namespaces(const Options& o) { return o.mode == LabMode::namespaces; }
bool when_accounting(const Options& o) { return o.has_accounting; }

// Without lmod, which is optional, a lab has no modules.
constexpr Tool kTools[] = {
    {"slurmctld", "slurm-wlm", always},
    {"slurmd", "slurm-wlm", always},
    {"sinfo", "slurm-wlm", always},
    {"srun", "slurm-wlm", always},
    {"munged", "munge", always},
    {"setsid", "util-linux", always},
    {"ip", "iproute2", in_namespaces},
    {"tc", "iproute2", in_namespaces},
    {"nsenter", "util-linux", in_namespaces},
    {"slurmdbd", "slurmdbd", when_accounting},
    {"mariadbd", "mariadb-server", when_accounting},
    {"sacctmgr", "slurm-wlm", when_accounting},
};

bool is_program(const Path& path) { return ::access(path.c_str(), X_OK) == 0 && !folder_exists(path); }

}  // namespace

std::string find_tool(std::string_view program) {
  const std::string path = environment_value("PATH").value_or("/usr/bin:/bin");
  for (const std::string_view entry : split(path, ':')) {
    const Path folder = entry.empty() ? "." : entry;
    if (is_program(folder / program)) return (folder / program).string();
    if (folder.filename() == "bin" && is_program(folder.parent_path() / "sbin" / program)) {
      return (folder.parent_path() / "sbin" / program).string();
    }
  }
  return "";
}

Status check_packages(const Options& options) {
  std::vector<std::string> programs;
  std::vector<std::string> packages;
  for (const Tool& tool : kTools) {
    if (!tool.is_needed(options) || !find_tool(tool.program).empty()) continue;
    programs.emplace_back(tool.program);
    if (std::ranges::find(packages, tool.package) == packages.end()) packages.emplace_back(tool.package);
  }
  if (programs.empty()) return {};
  return unavailable("lab: {}: not installed", join(programs, ", "))
      .cure("{}apt-get install -y --no-install-recommends {}", ::geteuid() == 0 ? "" : "sudo ",
            join(packages, " "));
}

Result<std::string> run_tool(std::string_view subject, const Command& command, Deadline deadline) {
  const std::string program = Path(command.argv[0]).filename().string();
  auto done = run_program(command, deadline);
  if (!done) return std::move(done).error().with_context(subject);
  if (done->exit.ok()) return std::move(done->out);
  const std::string_view message = trim(done->err.empty() ? done->out : done->err);
  const std::string first(message.substr(0, message.find('\n')));
  return unavailable("{}: {}: {}", subject, program, first.empty() ? to_text(done->exit) : printable(first));
}

}  // namespace stoker::lab
