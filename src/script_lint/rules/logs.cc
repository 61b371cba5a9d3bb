// Rules for log files in --output and --error.
#include <algorithm>
#include <set>

#include "base/file.h"
#include "script_lint/rule.h"
#include "slurm/script/user_script.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

bool is_log(const Directive& directive) {
  return directive.option.name == "--output" || directive.option.name == "--error";
}

// The base folder of relative log paths.
Path base_folder(const Script& script, const FindingReport& report) {
  const Directive* chdir = script.request.find("--chdir");
  return chdir == nullptr ? report.context().directory : report.context().directory / chdir->option.value;
}

// Since this release slurmstepd creates log folders (Slurm's changelog of 23.02).
constexpr std::uint32_t kMakesFolders = 2302;

bool makes_folders(const FindingReport& report) {
  return report.context().slurm.value_or(0) >= kMakesFolders;
}

// "logs/%x/%A" of "logs/%x/%A/%a.out": a different folder for each job.
std::string folder_of_each_job(const std::string& pattern) {
  const std::size_t slash = pattern.rfind('/');
  if (slash == std::string::npos) return "";
  const std::string folder = pattern.substr(0, slash);
  const bool is_new = folder.find("%j") != std::string::npos || folder.find("%J") != std::string::npos ||
                      folder.find("%A") != std::string::npos;
  return is_new ? folder : "";
}

void find_folder_of_each_job(const Script& script, FindingReport& report) {
  if (makes_folders(report)) return;
  for (const Directive& directive : script.request.directives) {
    if (!is_log(directive)) continue;
    const std::string folder = folder_of_each_job(directive.option.value);
    if (folder.empty()) continue;
    ScriptFinding& finding =
        report.add(directive.value, message("log folder {} is different for each job: Slurm 23.02 and "
                                            "later create it, earlier releases end the job at once",
                                            printable(folder)));
    // Such a pattern probably worked before, unless this release is older.
    if (!report.context().slurm) finding.level = Level::time;
    return;
  }
}

// "logs/cifar" of "logs/%x/%j.out" for a job with that name.
std::string folder_of_log(const Script& script, const std::string& pattern) {
  const std::size_t slash = pattern.rfind('/');
  std::string folder = pattern.substr(0, slash == std::string::npos ? 0 : slash);
  if (folder.find("%x") == std::string::npos) return slurm::log_folder(pattern);
  const Directive* name = script.request.find("--job-name");
  const std::string job = name == nullptr ? "%x" : name->option.value;
  std::string rest = folder;
  for (std::size_t at = rest.find("%x"); at != std::string::npos; at = rest.find("%x")) rest.erase(at, 2);
  if (rest.find_first_of("%\\") != std::string::npos || job.empty()) return "";
  for (std::size_t at = folder.find("%x"); at != std::string::npos; at = folder.find("%x", at + job.size()))
    folder.replace(at, 2, job);
  return folder;
}

// The log folder in an sbatch option; "" for any other word.
std::string folder_in_option(std::string_view word) {
  for (std::string_view name : {"--output=", "--error=", "-o", "-e"}) {
    if (word.starts_with(name)) return slurm::log_folder(word.substr(name.size()));
  }
  return "";
}

// snakemake --cluster "sbatch --output=logs/%j.out": its jobs end at once.
void find_log_of_inner(const Script& script, FindingReport& report) {
  if (makes_folders(report)) return;
  for (const ProgramCall& call : script.calls) {
    for (std::size_t i = 0; i < call.words.size(); ++i) {
      if (!call.words[i].starts_with("sbatch ") || call.program == "echo" || call.program == "printf")
        continue;
      // Nested quotes split the words: "sbatch -J "{rule}" -o logs/{rule}.out".
      for (std::size_t k = i; k < call.words.size(); ++k) {
        for (const std::string_view word : split(call.words[k], ' ')) {
          const std::string folder = folder_in_option(word);
          if (folder.empty() || !Path(folder).is_relative() ||
              folder.find_first_of("<>$~{}[]") != std::string::npos ||
              folder_exists(report.context().directory / folder) || script.mentions("mkdir"))
            continue;
          report
              .add(call.typed[k]->span,
                   message("log folder {} does not exist: before Slurm 23.02 each of these jobs ends at once",
                           printable(folder)))
              .fix = format("mkdir -p {}", shell_quote(folder));
          return;
        }
      }
    }
  }
}

void find_log_folder(const Script& script, FindingReport& report) {
  if (makes_folders(report)) return;
  find_folder_of_each_job(script, report);
  find_log_of_inner(script, report);
  std::set<std::string> reported;
  for (const Directive& directive : script.request.directives) {
    if (!is_log(directive) || script.request.find(directive.option.name) != &directive) continue;
    const std::string folder = folder_of_log(script, directive.option.value);
    if (folder.empty() || folder.find_first_of("<>$~{}[]") != std::string::npos || reported.contains(folder))
      continue;
    const Path path = base_folder(script, report) / folder;
    if (folder_exists(path) || (script.request.find("--chdir") == nullptr && holds_program(script, folder)))
      continue;
    // Away from the cluster an absolute path is unknown unless its parent exists here; /home alone exists
    // everywhere.
    const bool can_tell = Path(folder).is_relative() ||
                          (path.lexically_normal().parent_path().relative_path().has_parent_path() &&
                           folder_exists(path.parent_path()));
    if (!can_tell || !folder_exists(base_folder(script, report))) continue;
    reported.insert(folder);
    ScriptFinding& finding = report.add(
        directive.value,
        message(
            "log folder {} does not exist: before Slurm 23.02 the job ends at once without an error message",
            printable(folder)));
    finding.fix = format("mkdir -p {}", shell_quote(path.lexically_normal().string()));
    if (Path(folder).is_relative()) finding.fix = format("mkdir -p {}", shell_quote(folder));
    finding.folder = path.lexically_normal();
  }
}

// "outjobfile-J.out": a job number pattern with a missing %.
std::size_t bare_letter(std::string_view name) {
  if (name.find('%') != std::string_view::npos) return std::string_view::npos;
  for (std::size_t i = 1; i < name.size(); ++i) {
    const bool is_letter = name[i] == 'j' || name[i] == 'J';
    const bool is_apart = std::string_view("-_.").find(name[i - 1]) != std::string_view::npos &&
                          (i + 1 == name.size() || name[i + 1] == '.');
    if (is_letter && is_apart) return i;
  }
  return std::string_view::npos;
}

void find_percent(const Script& script, FindingReport& report) {
  for (const Directive& directive : script.request.directives) {
    if (!is_log(directive)) continue;
    const std::string& value = directive.option.value;
    const std::size_t name = value.rfind('/') == std::string::npos ? 0 : value.rfind('/') + 1;
    const std::size_t letter = bare_letter(std::string_view(value).substr(name));
    if (letter == std::string_view::npos || script.at(directive.value) != value) continue;
    const std::size_t at = directive.value.begin + name + letter;
    report.replace({at, at},
                   message("{}: a % is missing before {}, so each job overwrites the previous log",
                           printable(value), value[name + letter]),
                   "%");
  }
}

void find_array_letters(const Script& script, FindingReport& report) {
  if (script.request.find("--array") != nullptr || script.mentions("SLURM_ARRAY_")) return;
  for (const Directive& directive : script.request.directives) {
    const std::string& value = directive.option.value;
    if (!is_log(directive) ||
        (value.find("%A") == std::string::npos && value.find("%a") == std::string::npos))
      continue;
    report
        .add(directive.value, message("{}: %A and %a need an array, and this job has none: every job gets "
                                      "4294967294 and the same log",
                                      printable(value)))
        .fix = "%j";
  }
}

void find_one_log(const Script& script, FindingReport& report) {
  if (script.request.array_tasks() < 2) return;
  for (const char* name : {"--output", "--error"}) {
    const Directive* log = script.request.find(name);
    if (log == nullptr) continue;
    const std::string& value = log->option.value;
    const auto has = [&](const char* letters) { return value.find(letters) != std::string::npos; };
    if (has("%a") || has("%j") || has("%J") || value == "/dev/null") continue;
    report
        .add(log->value, message("{}: all {} array tasks write to one log", printable(value),
                                 script.request.array_tasks()))
        .fix = format("{}=%x-%A_%a.out", name);
  }
}

void find_log_on_node(const Script& script, FindingReport& report) {
  for (const Directive& directive : script.request.directives) {
    const std::string& value = directive.option.value;
    if (!is_log(directive) || (!value.starts_with("/tmp/") && !value.starts_with("/dev/shm/"))) continue;
    report.add(directive.value, message("{}: the log stays on the node-local disk, which you may not reach",
                                        printable(value)));
  }
}

constexpr Rule kLogRules[] = {
    {"log-folder", Level::job,
     "Slurm before 23.02 kills a job silently if it cannot open its log; later releases create the folder",
     "#!/bin/bash\n#SBATCH -o logs/%x-%j.out\n", "#!/bin/bash\n#SBATCH -o %x-%j.out\n",
     "an HPC manual's example; snakemake-executor-plugin-slurm #67", find_log_folder},
    {"log-without-percent", Level::job,
     "without a job number in its name each log overwrites the previous one",
     "#!/bin/bash\n#SBATCH --output=outjobfile-J.out\n", "#!/bin/bash\n#SBATCH --output=outjobfile-%J.out\n",
     "users' notes", find_percent},
    {"array-letters", Level::time, "%A and %a mean nothing outside an array",
     "#!/bin/bash\n#SBATCH --output=%A_%a.out\n",
     "#!/bin/bash\n#SBATCH --array=1-4\n#SBATCH --output=%A_%a.out\n", "sbatch(1), filename pattern",
     find_array_letters},
    {"one-log-for-array", Level::time, "all tasks of an array write to the same file",
     "#!/bin/bash\n#SBATCH --array=1-4\n#SBATCH --output=a.out\n",
     "#!/bin/bash\n#SBATCH --array=1-4\n#SBATCH --output=%A_%a.out\n", "sbatch(1), filename pattern",
     find_one_log},
    {"log-on-node", Level::time, "/tmp of the compute node is not /tmp of the login node",
     "#!/bin/bash\n#SBATCH --output=/tmp/%j.out\n", "#!/bin/bash\n#SBATCH --output=%j.out\n", "sites' guides",
     find_log_on_node},
};

}  // namespace

std::span<const Rule> log_rules() { return kLogRules; }

}  // namespace stoker::script_lint
