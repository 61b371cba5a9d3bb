// What a job's own shell command does by hand that a job file has a key for.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "explain/preflight/notes.h"
#include "explain/script/lint.h"

namespace stoker::explain {
namespace {

// Rules whose advice holds for a command of a job file, too.
constexpr std::array<std::string_view, 5> kRules = {"fitting-tool", "sbatch-loop", "submits-itself",
                                                    "many-processes", "ssh-loop"};

std::string cure_of(const ScriptFinding& finding, const Notes& notes) {
  if (finding.rule == "fitting-tool" || finding.rule == "sbatch-loop")
    return notes.say("array: {{over: values.csv, at_once: 20}}, and ${{params.NAME}} in run");
  if (finding.rule == "submits-itself") return "chain: {until: done, time_per_link: ...}";
  if (finding.rule == "ssh-loop") return "resources: {nodes: N, ranks_per_node: 1}";
  return finding.fix;
}

}  // namespace

void check_command(const job::Job& job, Notes& notes) {
  if (!job.command || !job.command->is_shell) return;
  // As the job that it will be, in the eyes of the rules.
  const std::string text = "#!/bin/sh\n#SBATCH --ntasks=1\n" + job.command->arguments.back() + "\n";
  const Lint lint = lint_script("run", text, {.directory = job.working_directory, .words = notes.words()});
  for (const ScriptFinding& finding : lint.findings) {
    if (std::find(kRules.begin(), kRules.end(), finding.rule) == kRules.end()) continue;
    notes.found(finding.rule, finding.level, "run.shell", quoted(finding.text), cure_of(finding, notes));
  }
}

}  // namespace stoker::explain
