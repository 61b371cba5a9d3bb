// Rules over what sbatch, srun and the shell of a batch script refuse.
#include "explain/failure/rule.h"

namespace stoker::explain {
namespace {

using enum Weight;

constexpr FailureRule kSubmitRules[] = {
    {"dos-line-ends", root, "$'\\r'\n^M: bad interpreter", R"((\$'\\r': command not found|bad interpreter))",
     "the script has line ends of DOS", "dos2unix SCRIPT, or sed -i 's/\\r$//' SCRIPT", "stoker check SCRIPT",
     "job.sh: line 2: $'\\r': command not found", "source of bash, execute_cmd.c"},
    {"no-such-account", root, "Invalid account", "",
     "the account, or its use in this partition, is not allowed",
     "#SBATCH --account=... of `sacctmgr show assoc user=$USER`", "stoker check SCRIPT",
     "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
     "source of slurm, slurm_errno.c"},
    {"no-such-partition", root, "nvalid partition", R"([Ii]nvalid partition (?:name )?specified)",
     "there is no such partition", "#SBATCH --partition=... of `sinfo -s`", "stoker check SCRIPT",
     "sbatch: error: Batch job submission failed: Invalid partition name specified",
     "source of slurm, slurm_errno.c"},
    {"no-such-qos", root, "Invalid qos", "", "that quality of service is not allowed for this account",
     "#SBATCH --qos=... of `sacctmgr show assoc format=qos`", "",
     "sbatch: error: Batch job submission failed: Invalid qos specification",
     "source of slurm, slurm_errno.c"},
    {"over-submit-limit", root, "violates accounting/QOS policy", "",
     "a limit on jobs, sizes or times of the account is passed", "fewer or smaller jobs at once, or wait",
     "sacctmgr show assoc user=$USER",
     "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, "
     "user's size "
     "and/or time limits)",
     "source of slurm, slurm_errno.c"},
    {"over-time-limit", root, "Requested time limit is invalid", "",
     "--time is over the limit of the partition", "a shorter --time, or another partition",
     "sinfo -o '%P %l'",
     "sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some "
     "limit)",
     "source of slurm, slurm_errno.c"},
    {"no-such-node-shape", root, "Requested node configuration is not available", "",
     "no node of the partition has so many cores, so much memory or such GPUs together",
     "less of one of them for each node", "sinfo -o '%n %c %m %G'",
     "sbatch: error: Batch job submission failed: Requested node configuration is not available",
     "source of slurm, slurm_errno.c"},
    {"node-not-there", root, "Required node not available", "",
     "a node that was asked for is down, drained or reserved", "without --nodelist, or with another node",
     "sinfo -R", "srun: Required node not available (down, drained or reserved)",
     "source of slurm, slurm_errno.c"},
    {"bad-array", root, "Invalid job array specification", "",
     "the array is larger than the site allows, or not written as one",
     "indices below MaxArraySize of `scontrol show config`", "",
     "sbatch: error: Batch job submission failed: Invalid job array specification",
     "source of slurm, slurm_errno.c"},
    {"command-not-found", root, "command not found", R"(line \d+: (\S+): command not found)",
     "the shell knows no command {1} on that node",
     "load the module or activate the environment in the script itself", "stoker check SCRIPT",
     "/var/spool/job4/slurm_script: line 4: trainer: command not found", "source of bash, execute_cmd.c",
     kScriptGoesOn},
    {"sh-command-not-found", root, ": not found", R"(^\S+: (?:line )?\d+: (\S+): not found)",
     "the shell knows no command {1} on that node",
     "load the module or activate the environment in the script itself", "stoker check SCRIPT",
     "/bin/sh: 1: trainer: not found", "source of dash, exec.c", kScriptGoesOn},
    {"file-of-script-missing", root, "No such file or directory",
     R"(^\S+: line \d+: (\S+): No such file or directory)",
     "the script uses {1}, which is not there on that node",
     "a path that the node sees; it is another machine than the one you are on", "stoker check SCRIPT",
     "job.sh: line 3: venv/bin/activate: No such file or directory", "source of bash, execute_cmd.c",
     kScriptGoesOn},
    {"script-permission", root, "Permission denied", R"(^\S+: (?:line )?\d+: (\S+): Permission denied)",
     "{1} may not be executed", "chmod +x {1}", "", "job.sh: line 3: ./train.sh: Permission denied",
     "source of bash, execute_cmd.c", kScriptGoesOn},
    {"python-file-missing", root, "can't open file", R"(can't open file '?([^':]+)'?: \[Errno 2\])",
     "there is no {1} in the folder the job runs in", "cd to it in the script, or --chdir",
     "stoker check SCRIPT",
     "python: can't open file '/users/ada/train.py': [Errno 2] No such file or directory",
     "source of CPython, main.c"},
    {"module-not-loaded", root, "module(s) are unknown\nModuleCmd_Load\nmodule --ignore",
     R"re((?:are unknown: "([^"]+)"|(?:ModuleCmd_Load.*'|module --ignore[-_]cache load ")([^'"]+)))re",
     "there is no module {1}{2} here", "a name of `module avail`", "",
     "Lmod has detected the following error:  The following module(s) are unknown: \"cuda/99\"\n"
     "ModuleCmd_Load.c(213):ERROR:105: Unable to locate a modulefile for 'cuda/99'\n"
     "  $ module --ignore_cache load \"cuda/99\"",
     "source of Lmod, and of Environment Modules", kScriptGoesOn},
    {"unbound-variable", root, "unbound variable", R"(line \d+: (\S+): unbound variable)",
     "the script uses {1}, which is not set", "a default: ${...:-}, or the option that sets it",
     "stoker check SCRIPT", "job.sh: line 12: SLURM_CPUS_PER_TASK: unbound variable",
     "source of bash, subst.c"},
    {"conda-not-initialised", root, "conda init\nproperly configured to use 'conda",
     R"((?:Your shell has not been properly configured to use 'conda activate'|Run 'conda init' before))",
     "conda activate works only behind conda's hook, which a batch script does not have",
     "eval \"$(conda shell.bash hook)\" before it", "stoker check SCRIPT",
     "CondaError: Run 'conda init' before 'conda activate'\n"
     "CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.",
     "source of conda, exceptions.py", kScriptGoesOn},
    {"script-syntax", root,
     "syntax error near unexpected token\nunexpected end of file\nunexpected EOF while",
     R"(line (\d+): (syntax error.*|unexpected EOF.*))", "bash cannot read line {1} of the script: {2}",
     "bash -n SCRIPT shows it at once", "stoker check SCRIPT",
     "job.sh: line 7: syntax error near unexpected token `done'\njob.sh: line 9: syntax error: unexpected "
     "end of file",
     "source of bash, parse.y"},
};

}  // namespace

std::span<const FailureRule> submit_rules() { return kSubmitRules; }

}  // namespace stoker::explain
