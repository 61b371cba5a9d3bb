#include "rank/capsule/facts.h"

#include <algorithm>
#include <sched.h>
#include <sys/utsname.h>

#include "base/file.h"
#include "base/secrets.h"
#include "dataset/manifest.h"
#include "net/port.h"
#include "rank/environment.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

// The output of a program; "" when it cannot be run, fails or times out.
std::string output_of(std::vector<std::string> argv, const Path& folder, Duration limit,
                      const std::optional<Environment>& environment = std::nullopt) {
  Command command;
  command.argv = std::move(argv);
  command.directory = folder;
  command.environment = environment;
  const auto captured = run_program(command, Deadline::after(limit));
  return captured.ok() && captured->exit.ok() ? captured->out : "";
}

std::string git(std::vector<std::string> arguments, const Path& folder, Duration limit = 20s) {
  // Otherwise git may lock the user's repository, start a pager, or ask for a password.
  std::vector<std::string> argv = {"git", "--no-optional-locks", "--no-pager"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return output_of(std::move(argv), folder, limit);
}

std::string git_line(std::vector<std::string> arguments, const Path& folder) {
  return std::string(trim(git(std::move(arguments), folder)));
}

// The value behind `key` in lines of "key<separator>value".
std::string value_of(std::string_view text, std::string_view key, char separator) {
  for (std::string_view line : split(text, '\n')) {
    const std::size_t at = line.find(separator);
    if (at == std::string_view::npos || trim(line.substr(0, at)) != key) continue;
    std::string_view value = trim(line.substr(at + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    return std::string(value);
  }
  return "";
}

// Like `pip freeze`, without the 1 s for importing pip.
constexpr const char* kListPackages = R"(
import sys
sys.path.pop(0)
import importlib.metadata as m, json, platform
print(platform.python_version())
lines = set()
for d in m.distributions():
    name = d.metadata["Name"]
    if not name:
        continue
    line = f"{name}=={d.version}"
    try:
        origin = json.loads(d.read_text("direct_url.json") or "null")
    except Exception:
        origin = None
    if origin and origin.get("url"):
        vcs = origin.get("vcs_info") or {}
        line = f"{name} @ " + (vcs.get("vcs", "") + "+" if vcs else "") + origin["url"] + ("@" + vcs["commit_id"] if vcs.get("commit_id") else "")
    lines.add(line)
print("\n".join(sorted(lines, key=str.lower)))
)";

}  // namespace

std::string short_commit(const Path& folder) {
  return std::string(trim(git({"rev-parse", "--short=7", "HEAD"}, folder, 2s)));
}

record::CodeInfo code_facts(const Path& folder, const Path& excluded) {
  record::CodeInfo facts;
  facts.root = git_line({"rev-parse", "--show-toplevel"}, folder);
  if (facts.root.empty()) return facts;
  facts.commit = git_line({"rev-parse", "HEAD"}, folder);
  facts.branch = git_line({"rev-parse", "--abbrev-ref", "HEAD"}, folder);
  facts.remote = git_line({"config", "--get", "remote.origin.url"}, folder);
  if (has_secret(facts.remote)) facts.remote = "(hidden: holds a password)";
  // Before the first commit, there is no diff.
  if (!facts.commit.empty()) facts.diff = hide_in_patch(git({"diff", "HEAD", "--binary"}, facts.root, 60s));
  std::vector<std::string> listing = {"ls-files", "-z", "--others", "--exclude-standard", "--", "."};
  const Path inside = excluded.lexically_relative(facts.root);
  if (!inside.empty() && !inside.string().starts_with(".."))
    listing.push_back(":(exclude)" + inside.string());
  const std::string untracked = git(std::move(listing), facts.root, 60s);
  for (std::string_view name : split(untracked, '\0')) {
    if (!name.empty()) facts.untracked.push_back(printable(name));
  }
  facts.dirty = !facts.diff.empty() || !facts.untracked.empty();
  return facts;
}

std::string interpreter_of(const std::vector<std::string>& command, const job::Environment& environment) {
  const std::string program = Path(command.at(0)).filename();
  if (program.starts_with("python")) return command[0];
  const bool is_shell = program == "sh" || program == "bash";
  const bool names_python = is_shell && command.size() > 2 && command[2].find("python") != std::string::npos;
  if (environment.venv && (is_shell || names_python)) return (*environment.venv / "bin/python").string();
  return names_python ? "python3" : "";
}

record::EnvironmentInfo environment_facts(const std::string& interpreter, const Environment& variables,
                                          const Path& folder) {
  record::EnvironmentInfo facts;
  for (const auto& [name, value] : variables) {
    facts.variables.emplace_back(name, hide_variable(name, value));
  }
  std::sort(facts.variables.begin(), facts.variables.end());
  if (interpreter.empty()) return facts;
  const std::string listed = output_of({interpreter, "-c", kListPackages}, folder, 60s, variables);
  const std::size_t end = listed.find('\n');
  if (end == std::string::npos) return facts;
  facts.programs.emplace_back("python", listed.substr(0, end));
  facts.packages = listed.substr(end + 1);
  for (std::string_view line : split(facts.packages, '\n')) {
    if (line.starts_with("torch==")) facts.programs.emplace_back("torch", line.substr(7));
  }
  return facts;
}

std::vector<record::DataInfo> data_facts(const job::Job& job) {
  std::vector<record::DataInfo> all;
  for (const auto& [name, source] : job.data) {
    record::DataInfo facts{
        .name = name, .source = source.source.string(), .split = source.split.value_or("")};
    if (const auto manifest = dataset::read_manifest(source.source); manifest.ok()) {
      facts.version = manifest->version;
      facts.samples = manifest->samples();
      facts.shards = manifest->shard_count();
      facts.bytes = manifest->bytes();
    }
    all.push_back(std::move(facts));
  }
  return all;
}

record::NodeInfo node_facts() {
  record::NodeInfo facts;
  facts.host = net::host_name();
  utsname kernel{};
  if (::uname(&kernel) == 0)
    facts.kernel = format("{} {} {}", kernel.sysname, kernel.release, kernel.machine);
  if (const auto release = read_file("/etc/os-release"); release.ok())
    facts.system = value_of(*release, "PRETTY_NAME", '=');
  if (const auto cpus = read_pseudo_file("/proc/cpuinfo"); cpus.ok())
    facts.cpu = value_of(*cpus, "model name", ':');
  facts.cores = cores_per_rank(0, RankPlacement{}, std::nullopt);
  if (const auto memory = read_pseudo_file("/proc/meminfo"); memory.ok()) {
    std::uint64_t kilobytes = 0;
    const std::string total = value_of(*memory, "MemTotal", ':');
    if (parse_number(split(total, ' ')[0], &kilobytes)) facts.memory_bytes = kilobytes * 1024;
  }
  const std::string gpus =
      output_of({"nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"}, {}, 15s);
  for (std::string_view line : split(gpus, '\n')) {
    const std::vector<std::string_view> parts = split(line, ',');
    if (parts.size() != 2) continue;
    facts.gpus.emplace_back(trim(parts[0]));
    facts.driver = trim(parts[1]);
  }
  return facts;
}

}  // namespace stoker::rank
