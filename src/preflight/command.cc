#include "preflight/command.h"

#include <algorithm>
#include <array>

#include "script_lint/launches/launch_check.h"
#include "script_lint/lint.h"
#include "stoker/text.h"

namespace stoker::preflight {
namespace {

// Rules with advice that also applies to a command of a job file.
constexpr std::array<std::string_view, 5> kRules = {"better-tool", "sbatch-loop", "submits-itself",
                                                    "many-processes", "ssh-loop"};

Message cure_of(const script_lint::ScriptFinding& finding) {
  if (finding.rule == "better-tool" || finding.rule == "sbatch-loop")
    return message("array: {{over: values.csv, at_once: 20}}, and ${{params.NAME}} in run");
  if (finding.rule == "submits-itself") return "chain: {until: done, time_per_link: ...}";
  if (finding.rule == "ssh-loop") return "resources: {nodes: N, ranks_per_node: 1}";
  return finding.fix;
}

}  // namespace

void check_launchers(const job::Job& job, Notes& notes) {
  if (!job.command) return;
  const std::string_view key = job.command->is_shell ? "run.shell" : "run";
  for (script_lint::LaunchProblem& problem :
       script_lint::find_launch_problems(job, slurm::process_environment()))
    notes.found(problem.rule, Level::job, key, problem.text, std::move(problem.fix));
}

void check_command(const job::Job& job, Notes& notes) {
  if (!job.command || !job.command->is_shell) return;
  // Wrapped as a batch script for the rules.
  const std::string text = "#!/bin/sh\n#SBATCH --ntasks=1\n" + job.command->arguments.back() + "\n";
  const script_lint::LintResult lint =
      script_lint::lint_script("run", text, {.directory = job.working_directory});
  for (const script_lint::ScriptFinding& finding : lint.findings) {
    if (std::find(kRules.begin(), kRules.end(), finding.rule) == kRules.end()) continue;
    notes.found(finding.rule, finding.level, "run.shell", finding.text, cure_of(finding));
  }
}

}  // namespace stoker::preflight
