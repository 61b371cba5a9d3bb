// Rules for errors of sbatch, srun and the batch script's shell.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kSubmitRules[] = {
    {"dos-line-ends", root, "\\r'\n^M: bad interpreter\n: set: pipefail\n: set: -",
     R"(\$'[^']*\\r'|\^M: bad interpreter|: line \d+: set: [\w-]+(?:$|\r))", "the script has DOS line ends",
     "`dos2unix SCRIPT`, or `sed -i 's/\\r$//' SCRIPT`", "stoker check {started_from}",
     "job.sh: line 2: $'\\r': command not found\njob.sh: line 9: syntax error near unexpected token "
     "`$'do\\r''\n"
     "job.sh: line 2: set: pipefail\r: invalid option name",
     "source of bash, execute_cmd.c"},
    {"no-such-account", root, "Invalid account", "",
     "the account is invalid, or not allowed in this partition",
     "choose an account for `--account` from `sacctmgr show assoc user=$USER`", "stoker check {started_from}",
     "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
     "source of slurm, slurm_errno.c"},
    {"no-such-partition", root, "nvalid partition", R"([Ii]nvalid partition (?:name )?specified)",
     "the partition does not exist", "choose a partition for `--partition` from `sinfo -s`",
     "stoker check {started_from}",
     "sbatch: error: Batch job submission failed: Invalid partition name specified",
     "source of slurm, slurm_errno.c"},
    {"no-such-qos", root, "Invalid qos", "", "the account may not use that QOS",
     "choose a QOS for `--qos` from `sacctmgr show assoc format=qos`", "",
     "sbatch: error: Batch job submission failed: Invalid qos specification",
     "source of slurm, slurm_errno.c"},
    {"over-submit-limit", root, "violates accounting/QOS policy", "",
     "the account exceeds a limit on jobs, sizes or times", "submit fewer or smaller jobs at once, or wait",
     "sacctmgr show assoc user=$USER",
     "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, "
     "user's size "
     "and/or time limits)",
     "source of slurm, slurm_errno.c"},
    {"over-time-limit", root, "Requested time limit is invalid", "",
     "--time exceeds the limit of the partition",
     "use a shorter time limit (`--time`) or a different partition", "sinfo -o '%P %l'",
     "sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some "
     "limit)",
     "source of slurm, slurm_errno.c"},
    {"no-such-node-shape", root, "Requested node configuration is not available", "",
     "no node of the partition has this combination of cores, memory and GPUs", "request less per node",
     "sinfo -o '%n %c %m %G'",
     "sbatch: error: Batch job submission failed: Requested node configuration is not available",
     "source of slurm, slurm_errno.c"},
    {"node-not-there", root, "Required node not available", "",
     "a requested node is down, drained or reserved", "omit `--nodelist`, or name a different node",
     "sinfo -R", "srun: Required node not available (down, drained or reserved)",
     "source of slurm, slurm_errno.c"},
    {"bad-array", root, "Invalid job array specification", "",
     "the array is invalid, or larger than the site allows",
     "use indices below MaxArraySize of `scontrol show config`", "",
     "sbatch: error: Batch job submission failed: Invalid job array specification",
     "source of slurm, slurm_errno.c"},
    {"interpreter-missing", root, "required file not found\nbad interpreter: No such file",
     R"((?:line \d+: )?(\S+): (?:cannot execute: required file not found|(\S+): bad interpreter: No such file))",
     "the interpreter in the first line of {1} does not exist on that node[[: {2}]]",
     "`head -1 {1}` shows it; use one that exists on the compute node", "stoker check {started_from}",
     "job.sh: line 3: ./evaluate.py: cannot execute: required file not found\n"
     "bash: ./evaluate.py: /opt/env/bin/python: bad interpreter: No such file or directory",
     "source of bash, execute_cmd.c", kScriptContinues},
    {"broken-continuation", root, "command not found\n: not found",
     R"(^\S+: (?:line )?\d+: (--?[A-Za-z][\w-]*)(?:=\S*)?: (?:command )?not found)",
     "a command of the script ends before {1}: the line above has no backslash at its end, or a blank behind "
     "it",
     "make the backslash the last character of that line: `sed -i 's/\\\\ *$/\\\\/' SCRIPT`",
     "stoker check {started_from}", "job.sh: line 7: --lr: command not found",
     "source of bash, execute_cmd.c"},
    {"module-command-missing", root, "command not found\n: not found",
     R"(^\S+: (?:line )?\d+: (module|ml): (?:command )?not found)",
     "the shell has no command {1}: the script's shell did not load environment modules",
     "`source /etc/profile.d/modules.sh` (or `lmod.sh`) before it, or `#!/bin/bash -l` as the first line", "",
     "job.sh: line 3: module: command not found", "source of bash, execute_cmd.c", kScriptContinues},
    {"command-not-found", root, "command not found", R"(line \d+: (\S+): command not found)",
     "the shell does not find command {1} on that node",
     "load its module or activate its environment before that line", "stoker check {started_from}",
     "/var/spool/job4/slurm_script: line 4: trainer: command not found", "source of bash, execute_cmd.c",
     kScriptContinues},
    {"sh-command-not-found", root, ": not found", R"(^\S+: (?:line )?\d+: (\S+): not found)",
     "the shell does not find command {1} on that node",
     "load its module or activate its environment before that line", "stoker check {started_from}",
     "/bin/sh: 1: trainer: not found", "source of dash, exec.c", kScriptContinues},
    {"file-of-script-missing", root, "No such file or directory",
     R"(^\S+: line \d+: (\S+): No such file or directory)",
     "the script uses {1}, which does not exist on that node",
     "use a path that exists on the compute node, not only on the login node", "stoker check {started_from}",
     "job.sh: line 3: venv/bin/activate: No such file or directory", "source of bash, execute_cmd.c",
     kScriptContinues},
    {"script-permission", root, "Permission denied", R"(^\S+: (?:line )?\d+: (\S+): Permission denied)",
     "no permission to execute {1}", "`chmod +x {1}`", "", "job.sh: line 3: ./train.sh: Permission denied",
     "source of bash, execute_cmd.c", kScriptContinues},
    {"python-file-missing", root, "can't open file", R"(can't open file '?([^':]+)'?: \[Errno 2\])",
     "the script {1} does not exist on that node",
     "check its name; a relative path starts at the working directory (`cd` in the script, or `--chdir`)",
     "stoker check {started_from}",
     "python: can't open file '/users/ada/train.py': [Errno 2] No such file or directory",
     "source of CPython, main.c"},
    {"module-not-loaded", root, "module(s) are unknown\nModuleCmd_Load\nmodule --ignore",
     R"re((?:are unknown: "([^"]+)"|(?:ModuleCmd_Load.*'|module --ignore[-_]cache load ")([^'"]+)))re",
     "module {1}{2} does not exist here", "choose a name from `module avail`", "",
     "Lmod has detected the following error:  The following module(s) are unknown: \"cuda/99\"\n"
     "ModuleCmd_Load.c(213):ERROR:105: Unable to locate a modulefile for 'cuda/99'\n"
     "  $ module --ignore_cache load \"cuda/99\"",
     "source of Lmod, and of Environment Modules", kScriptContinues},
    {"unbound-variable", root, "unbound variable", R"(line \d+: (\S+): unbound variable)",
     "the script uses {1}, which is not set",
     "set it before that line (`export {1}=VALUE`), or use a default (`${{1}:-VALUE}`); "
     "Slurm sets its variables by options, for example `--cpus-per-task`",
     "stoker check {started_from}", "job.sh: line 12: SLURM_CPUS_PER_TASK: unbound variable",
     "source of bash, subst.c"},
    {"conda-not-initialised", root, "conda init\nproperly configured to use 'conda",
     R"((?:Your shell has not been properly configured to use 'conda activate'|Run 'conda init' before))",
     "conda activate needs conda's hook, which a batch script does not load",
     "`eval \"$(conda shell.bash hook)\"` before it", "stoker check {started_from}",
     "CondaError: Run 'conda init' before 'conda activate'\n"
     "CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.",
     "source of conda, exceptions.py", kScriptContinues},
    {"script-syntax", root,
     "syntax error near unexpected token\nunexpected end of file\nunexpected EOF while",
     R"(line (\d+): (syntax error.*|unexpected EOF.*))", "bash cannot parse line {1} of the script: {2}",
     "look for a quote, a bracket, `do` or `then` that was not closed, also in the lines above it: `bash -n "
     "SCRIPT`",
     "stoker check {started_from}",
     "job.sh: line 7: syntax error near unexpected token `done'\njob.sh: line 9: syntax error: unexpected "
     "end of file",
     "source of bash, parse.y"},
};

}  // namespace

std::span<const FailureRule> submit_rules() { return kSubmitRules; }

}  // namespace stoker::diagnose
