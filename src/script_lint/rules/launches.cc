// Rules for launchers that start the wrong number of processes, or processes that never connect.
#include "script_lint/launches/launch_check.h"
#include "script_lint/rule.h"

namespace stoker::script_lint {
namespace {

void report_problems(std::string_view rule, const Script& script, FindingReport& report) {
  for (LaunchProblem& problem : find_launch_problems(script, report.context())) {
    if (problem.rule != rule) continue;
    ScriptFinding& finding = report.add(problem.at, problem.text);
    finding.fix = std::move(problem.fix);
    finding.copies = problem.copies;
    if (problem.edit) finding.edits = {std::move(*problem.edit)};
  }
}

void find_separate_trainings(const Script& script, FindingReport& report) {
  report_problems("separate-trainings", script, report);
}

void find_bad_rendezvous(const Script& script, FindingReport& report) {
  report_problems("rendezvous", script, report);
}

void find_agent_per_task(const Script& script, FindingReport& report) {
  report_problems("agent-per-task", script, report);
}

void find_nested_launcher(const Script& script, FindingReport& report) {
  report_problems("nested-launcher", script, report);
}

constexpr Rule kLaunchRules[] = {
    {"separate-trainings", Level::job,
     "one torchrun per node needs the number of nodes; without it each one trains alone, with exit code 0",
     "#!/bin/bash\n#SBATCH --nodes=2\nsrun torchrun --nproc-per-node=4 train.py\n",
     "#!/bin/bash\n#SBATCH --nodes=2\nsrun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d "
     "--rdzv-endpoint=$HEAD:29400 train.py\n",
     "torchrun(1): --nnodes is 1 by default; Lightning's \"srun not used\"", find_separate_trainings},
    {"rendezvous", Level::job,
     "the copies of torchrun connect if their number is --nnodes, and if they know an address and their "
     "ranks",
     "#!/bin/bash\n#SBATCH --nodes=2\nsrun torchrun --nnodes=2 --nproc-per-node=4 train.py\n",
     "#!/bin/bash\n#SBATCH --nodes=2\nsrun torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d "
     "--rdzv-endpoint=$HEAD:29400 train.py\n",
     "torch.distributed.run: --master-addr is 127.0.0.1 by default; pytorch #73656", find_bad_rendezvous},
    {"agent-per-task", Level::job,
     "torchrun starts all ranks of its node; several on one node compete for ports and GPUs",
     "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\nsrun torchrun --nnodes=2 "
     "--nproc_per_node=4 train.py\n",
     "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\nsrun torchrun --nnodes=2 "
     "--nproc_per_node=4 --rdzv_backend=c10d --rdzv_endpoint=$HEAD:29400 train.py\n",
     "pytorch forums", find_agent_per_task},
    {"nested-launcher", Level::job,
     "a launcher in each task of srun or mpirun starts all ranks once per task",
     "#!/bin/bash\n#SBATCH --nodes=2\nsrun deepspeed --hostfile=hosts train.py\n",
     "#!/bin/bash\n#SBATCH --nodes=2\ndeepspeed --hostfile=hosts train.py\n",
     "DeepSpeed's launcher starts its ranks on all hosts through ssh", find_nested_launcher},
};

}  // namespace

std::span<const Rule> launch_rules() { return kLaunchRules; }

}  // namespace stoker::script_lint
