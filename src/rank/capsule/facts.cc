#include "rank/capsule/facts.h"

#include <algorithm>
#include <array>
#include <sched.h>
#include <sys/utsname.h>

#include "base/file.h"
#include "base/time.h"
#include "base/version.h"
#include "format/manifest.h"
#include "observe/gpu.h"
#include "observe/proc.h"

namespace stoker::rank {
namespace {

// Beside the ranks nothing waits for these programs; a repository on a stuck filesystem must still not hold
// us.
constexpr Duration kProgramLimit = std::chrono::seconds(60);
constexpr ByteCount kDiffLimit = 16_MiB;

std::string output_of(std::vector<std::string> argv,
                      const std::optional<Environment>& environment = std::nullopt) {
  const auto captured = run_program({.argv = std::move(argv), .environment = environment},
                                    Deadline::after(kProgramLimit), kDiffLimit);
  return captured && captured->exit.ok() ? captured->out : "";
}

std::string git(const Path& folder, std::vector<std::string> words) {
  // No optional locks: a `git status` of the user's own must not fail because we are reading.
  std::vector<std::string> argv{"git", "--no-optional-locks", "-C", folder.string()};
  argv.insert(argv.end(), words.begin(), words.end());
  return output_of(std::move(argv));
}

std::string git_line(const Path& folder, std::vector<std::string> words) {
  return std::string(trim(git(folder, std::move(words))));
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::string_view line : stoker::split(text, '\n')) {
    if (!line.empty()) lines.emplace_back(line);
  }
  return lines;
}

// The interpreter that the ranks will use, or "": the job's venv, else the command itself if it is a Python.
std::string python_of(const job::Job& job) {
  if (job.environment.venv) return (*job.environment.venv / "bin" / "python").string();
  if (!job.command || job.command->is_shell) return "";
  const std::string& program = job.command->arguments.front();
  return Path(program).filename().string().starts_with("python") ? program : "";
}

// The value behind "NAME=" or "NAME :" at a line's start, without quotes; "" if there is none.
std::string value_in(std::string_view text, std::string_view name, char separator) {
  for (std::string_view line : stoker::split(text, '\n')) {
    const std::size_t at = line.find(separator);
    if (at == std::string_view::npos || trim(line.substr(0, at)) != name) continue;
    std::string_view value = trim(line.substr(at + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
      value = value.substr(1, value.size() - 2);
    return std::string(value);
  }
  return "";
}

}  // namespace

std::string short_commit(const Path& folder) { return git_line(folder, {"rev-parse", "--short", "HEAD"}); }

record::CodeFacts gather_code(const Path& folder) {
  record::CodeFacts facts;
  facts.root = git_line(folder, {"rev-parse", "--show-toplevel"});
  if (facts.root.empty()) return facts;
  facts.commit = git_line(folder, {"rev-parse", "HEAD"});
  facts.branch = git_line(folder, {"symbolic-ref", "--short", "-q", "HEAD"});
  facts.remote = masked("", git_line(folder, {"config", "--get", "remote.origin.url"}));
  if (!facts.commit.empty()) {
    facts.diff =
        git(facts.root, {"diff", "--no-ext-diff", "--no-textconv", "--no-color", "--binary", "HEAD"});
  }
  facts.untracked = lines_of(git(facts.root, {"ls-files", "--others", "--exclude-standard"}));
  facts.dirty = !facts.diff.empty() || !facts.untracked.empty();
  return facts;
}

std::string masked(std::string_view name, std::string_view value) {
  constexpr std::array<std::string_view, 9> kSecret = {"TOKEN", "SECRET", "PASSWORD", "PASSWD",    "APIKEY",
                                                       "_KEY",  "AUTH",   "COOKIE",   "CREDENTIAL"};
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  const bool is_secret = std::any_of(kSecret.begin(), kSecret.end(), [&](std::string_view word) {
    return upper.find(word) != std::string::npos;
  });
  if (is_secret && !value.empty()) return "(masked)";
  // scheme://user:password@host
  std::string text(value);
  for (std::size_t at = text.find("://"); at != std::string::npos; at = text.find("://", at + 3)) {
    const std::size_t end = std::min(text.find_first_of("/ \t\n", at + 3), text.size());
    const std::size_t sign = text.rfind('@', end);
    if (sign != std::string::npos && sign > at + 3 && sign < end)
      text.replace(at + 3, sign - at - 3, "(masked)");
  }
  return text;
}

record::EnvironmentFacts gather_environment(const job::Job& job, const Environment& environment) {
  record::EnvironmentFacts facts;
  facts.programs.emplace_back("stoker", std::string(version()));
  if (const std::string python = python_of(job); !python.empty()) {
    // importlib.metadata needs no pip and takes a fifth of `pip freeze`'s time. -B: nothing is written.
    const std::string text = output_of(
        {python, "-B", "-c",
         "import sys, importlib.metadata as m\n"
         "print(sys.version.split()[0])\n"
         "print('\\n'.join(sorted({f\"{d.metadata['Name']}=={d.version}\" for d in m.distributions()}, "
         "key=str.lower)))"},
        environment);
    const std::size_t end = text.find('\n');
    if (end != std::string::npos) {
      facts.programs.emplace_back("python", text.substr(0, end));
      facts.packages = text.substr(end + 1);
    }
  }
  for (const auto& [name, value] : environment) facts.variables.emplace_back(name, masked(name, value));
  std::sort(facts.variables.begin(), facts.variables.end());
  return facts;
}

std::vector<record::DataFacts> gather_data(const job::Job& job) {
  std::vector<record::DataFacts> all;
  for (const auto& [name, data] : job.data) {
    record::DataFacts facts{.name = name, .source = data.source.string(), .split = data.split.value_or("")};
    if (const auto manifest = formats::read_manifest(data.source)) {
      facts.version = manifest->version;
      for (const formats::SplitInfo& split : manifest->splits) {
        if (data.split && split.name != *data.split) continue;
        facts.samples += split.samples;
        facts.shards += split.shards.size();
        for (const formats::ShardInfo& shard : split.shards) facts.bytes += shard.bytes;
      }
    }
    all.push_back(std::move(facts));
  }
  return all;
}

record::NodeFacts gather_node(const std::string& host) {
  record::NodeFacts facts{.host = host};
  utsname names{};
  if (::uname(&names) == 0) facts.kernel = format("{} {}", names.sysname, names.release);
  if (const auto text = read_pseudo_file("/etc/os-release"))
    facts.system = value_in(*text, "PRETTY_NAME", '=');
  if (const auto text = read_pseudo_file("/proc/cpuinfo")) facts.cpu = value_in(*text, "model name", ':');
  cpu_set_t cores;
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) facts.cores = CPU_COUNT(&cores);
  if (const auto use = observe::read_host("/proc")) facts.memory_bytes = use->memory_total_bytes;
  facts.gpus = observe::GpuReader::open().names();
  return facts;
}

Status write_capsule(const record::RunFolder& run, const job::Job& job, const Environment& environment,
                     const std::string& host) {
  Status first;
  const auto keep = [&](Status status) {
    if (first.ok()) first = std::move(status);
  };
  keep(record::write_data(run, gather_data(job)));
  keep(record::write_execution(run, {gather_node(host)}));
  keep(record::write_code(run, gather_code(job.working_directory)));
  keep(record::write_environment(run, gather_environment(job, environment)));
  return first;
}

}  // namespace stoker::rank
