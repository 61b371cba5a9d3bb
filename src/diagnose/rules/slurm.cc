// Rules for messages of Slurm's daemons and commands in job logs.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kSlurmRules[] = {
    {"cgroup-oom-kill", root, "oom-kill event\noom_kill event\nkill event",
     R"(Detected \d+ oom[_-]kill events?(?:\(s\))? in (?:StepId=|step )?(\S+?)(?:\.? cgroup|\.? |\.?$))",
     "the kernel killed a process of step {1}: the job used more memory than requested",
     "request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "sacct -j JOB -o JobID,ReqMem,MaxRSS",
     "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=812345.0. Some of the step tasks have been "
     "OOM Killed.\n"
     "slurmstepd: error: Detected 2 oom_kill events in StepId=7.batch. Some of the step tasks have been OOM "
     "Killed.",
     "source of slurm, task_cgroup_memory.c"},
    {"srun-out-of-memory", root, "Out Of Memory", R"(srun: error: (\S+): tasks? ([\d,-]+): Out Of Memory)",
     "the kernel killed task {2} on {1}: the job used more memory than requested",
     "request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "sacct -j JOB -o JobID,ReqMem,MaxRSS", "srun: error: gpu012: task 3: Out Of Memory",
     "source of slurm, srun/launch.c"},
    {"memory-limit-exceeded", root, "memory limit",
     R"([Ee]xceeded (?:job |step )?(?:virtual )?memory limit(?: \((\d+) > (\d+)\))?)",
     "Slurm killed the job: it used more memory than requested",
     "request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "sacct -j JOB -o JobID,ReqMem,MaxRSS",
     "slurmstepd: error: StepId=7.0 exceeded memory limit (268435456 > 67108864), being killed\n"
     "slurmstepd: error: Exceeded job memory limit",
     "source of slurm, jobacct_gather.c"},
    {"time-limit", outside, "DUE TO TIME LIMIT",
     R"((?:JOB|STEP) (\S+) ON (\S+) CANCELLED AT (\S+) DUE TO TIME LIMIT)", "job {1} reached its time limit",
     "request more time, or save a checkpoint before the end: `#SBATCH --signal=B:USR1@120`, and a trap for "
     "it in the script",
     "sacct -j {1} -o Elapsed,Timelimit",
     "slurmstepd: error: *** JOB 812345 ON gpu012 CANCELLED AT 2025-11-21T15:13:52 DUE TO TIME LIMIT ***",
     "source of slurm, req.c"},
    {"batch-time-limit", outside, "PBS: job killed: walltime\nTERM_RUNLIMIT", "",
     "the job reached its time limit", "use more time, or checkpoints on a signal", "",
     "=>> PBS: job killed: walltime 5423 exceeded limit 5400\n"
     "TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
     "source of OpenPBS and LSF"},
    {"preempted", outside, "DUE TO PREEMPTION", R"(CANCELLED AT (\S+) DUE TO PREEMPTION)",
     "preempted by a job of higher priority",
     "use checkpoints and `#SBATCH --requeue`: the job restarts, and the program resumes from the last one",
     "", "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-11-21T15:13:52 DUE TO PREEMPTION ***",
     "source of slurm, req.c"},
    {"node-failure", outside, "DUE TO NODE FAILURE", R"(CANCELLED AT (\S+) DUE TO NODE FAILURE)",
     "a node of the job failed", "retry without that node: `--exclude={node}`", "sinfo -R",
     "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-11-21T15:13:52 DUE TO NODE FAILURE, SEE SLURMCTLD "
     "LOG FOR "
     "DETAILS ***",
     "source of slurm, req.c"},
    {"srun-node-failure", outside, "Node failure on", R"(Node failure on (\S+))", "node {1} failed",
     "retry without that node: `--exclude={node}`", "sinfo -R", "srun: error: Node failure on gpu012",
     "source of slurm, step_launch.c"},
    {"requeued", outside, "DUE TO JOB REQUEUE", "", "the job was requeued", "", "",
     "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-11-21T15:13:52 DUE TO JOB REQUEUE ***",
     "source of slurm, req.c"},
    {"job-cancelled", outside, "CANCELLED AT",
     R"(\*\*\* JOB (\S+) ON \S+ CANCELLED AT (\S+)(?: DUE to SIGNAL (.+?))? \*\*\*)",
     "job {1} was cancelled by a user, or by Slurm because of its dependency", "", "sacct -j {1} -o State%40",
     "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2025-11-21T15:13:52 ***", "source of slurm, req.c"},
    {"step-cancelled", effect, "CANCELLED AT", R"(\*\*\* STEP (\S+) ON \S+ CANCELLED AT)",
     "step {1} was cancelled after another task or the job ended", "", "",
     "slurmstepd: error: *** STEP 7.0 ON n1 CANCELLED AT 2025-11-21T15:13:52 ***", "source of slurm, req.c"},
    {"log-not-opened", root, "Could not open std", R"(Could not open std(?:out|err) file (\S+): (.*))",
     "the folder of {1} does not exist or is not writable ({2})",
     "create its folder before submitting: `mkdir -p \"$(dirname {1})\"`", "stoker check {started_from}",
     "slurmstepd: error: Could not open stdout file /users/ada/logs/7.out: No such file or directory",
     "source of slurm, io.c"},
    {"log-folder-missing", root, "cannot be opened: its folder",
     R"(^the job's log cannot be opened: its folder (\S.*) does not exist \()",
     "Slurm could not open the job's log: folder {1} does not exist",
     "create it, then submit again: `mkdir -p {1}`", "stoker check {started_from}",
     "the job's log cannot be opened: its folder /users/ada/logs does not exist (exit code 0:53)",
     "source of stoker"},
    {"launch-failed", ending, "exit code 0:53", "",
     "Slurm could not start the script: usually a node cannot open its log or its folder",
     "check that the nodes see the folders of the script and of its log", "stoker check {started_from}",
     "Slurm could not start the script (exit code 0:53)", "source of slurm, slurmd/slurmstepd"},
    {"working-folder-missing", root, "couldn't chdir to", R"(couldn't chdir to `([^']+)': (.*?): going to)",
     "folder {1} does not exist on the node ({2}): the job ran in /tmp",
     "submit from a folder that the nodes see", "",
     "slurmstepd: error: couldn't chdir to `/users/ada/x': No such file or directory: going to /tmp instead",
     "source of slurm, task.c"},
    {"program-not-found", root, "execve()", R"(execve\(\): (\S+): (.*))", "program {1} cannot start: {2}",
     "use its full path in the script, or load its module or environment", "stoker check {started_from}",
     "slurmstepd: error: execve(): trainer: No such file or directory", "source of slurm, task.c"},
    {"gres-mismatch", root, "Invalid generic resource", "", "the requested GPU type is not available",
     "use a type from `sinfo -o %G` (for example `--gres=gpu:1`)", "stoker site show",
     "srun: error: Unable to create step for job 7: Invalid generic resource (gres) specification",
     "source of slurm, slurm_errno.c"},
    {"job-already-ending", outside, "already completing or completed",
     R"((?:Unable to create step for|Unable to confirm allocation for) job (\d+): .*already completing or completed)",
     "job {1} was ending when srun requested a step: time limit or cancellation",
     "request more time if the limit was the reason", "sacct -j {1} -o State%40,Elapsed,Timelimit",
     "srun: error: Unable to create step for job 7: Job/step already completing or completed",
     "source of slurm, slurm_errno.c"},
    {"step-not-created", root, "Unable to create step for job",
     R"(Unable to create step for job (\d+): (.*))", "srun could not create a step in job {1}: {2}",
     "request at most the resources of the job; `srun --overlap` or `srun --exact` for concurrent steps",
     "stoker check {started_from}",
     "srun: error: Unable to create step for job 7: More processors requested than permitted",
     "source of slurm, launch.c"},
    {"controller-silent", root, "Unable to contact slurm controller\nSocket timed out on send/recv", "",
     "Slurm's controller did not answer", "retry later; Slurm commands in loops add to the load",
     "scontrol ping",
     "srun: error: Unable to confirm allocation for job 7: Unable to contact slurm controller (connect "
     "failure)",
     "source of slurm, slurm_errno.c"},
    {"batch-killed", ending, "Killed", R"(^Killed\s*$|: line \d+:\s+\d+ Killed(?:$|\s+(.*)))",
     "the command[[ {1}]] was killed with SIGKILL, usually by the kernel (out of memory), or at a hard limit "
     "of "
     "CPU time (`ulimit -t`)",
     "request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "sacct -j JOB -o JobID,State,ReqMem,MaxRSS",
     "job.sh: line 9:  4711 Killed                  python train.py\n/tmp/slurmd/job603995/slurm_script: "
     "line "
     "9:  4727 Killed",
     "source of bash, jobs.c"},
    {"batch-terminated", ending, "Terminated", R"(^Terminated\s*$|: line \d+:\s+\d+ Terminated(?:$|\s+(.*)))",
     "the command[[ {1}]] was ended with SIGTERM, which other processes send", "",
     "sacct -j JOB -o JobID,State,ExitCode,DerivedExitCode",
     "job.sh: line 9:  4711 Terminated              python train.py\nTerminated", "source of bash, jobs.c",
     kScriptContinues},
    {"mpi-abort", ending, "MPI_ABORT was invoked\ncalled MPI_Abort(",
     R"(MPI_ABORT was invoked on rank (\d+)|called MPI_Abort\([^)]*\) - process (\d+))",
     "rank {1}{2} ended all ranks with MPI_Abort[[: {4}]]", "read the last lines of that rank before it", "",
     "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n"
     "application called MPI_Abort(MPI_COMM_WORLD, 17) - process 0",
     "source of Open MPI, ompi_mpi_abort.c; source of MPICH, abort.c"},
    {"srun-killed", ending, "Killed", R"(srun: error: (\S+): tasks? ([\d,-]+): Killed)",
     "task {2} on {1} was killed with SIGKILL, usually by the kernel (out of memory)",
     "request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "sacct -j JOB -o JobID,State,ReqMem,MaxRSS", "srun: error: n2: tasks 0-3: Killed",
     "source of slurm, srun/task_state.c"},
    {"srun-signal", ending, "Segmentation fault\nBus error\nAborted",
     R"(srun: error: (?:(\S+): tasks? ([\d,-]+)|.*): (Segmentation fault|Bus error|Aborted))",
     "the program crashed: {3}[[ (task {2} on {1})]]",
     "`ulimit -c unlimited` before it keeps a core file for gdb; Python shows its place with "
     "`export PYTHONFAULTHANDLER=1`",
     "", "srun: error: n2: task 1: Segmentation fault (core dumped)", "source of slurm, srun/launch.c"},
    {kTaskSignal, ending, "Segmentation fault\nAborted\nFloating point exception",
     R"(^(?:[\w.@/-]+: ){0,2}(?:task|rank|process) (\d{1,6})(?: on [\w.-]+)?: (Segmentation fault|Aborted|Floating point exception))",
     "the program crashed in task {1}: {2}",
     "`ulimit -c unlimited` before it keeps a core file for gdb; Python shows its place with "
     "`export PYTHONFAULTHANDLER=1`",
     "", "launcher: task 3: Segmentation fault\nn2: rank 7: Floating point exception (core dumped)",
     "source of many launchers"},
    {"prolog-failed", root, "rolog", R"(([Pp]rolog) (?:failed|error|hook failed))",
     "the node's prolog failed", "leave that node out (`--exclude={node}`) and inform the administrators",
     "sinfo -R", "slurmstepd: error: TaskProlog failed status=1\nslurmd: error: prolog failed: rc:256",
     "source of slurm, req.c"},
};

}  // namespace

std::span<const FailureRule> slurm_rules() { return kSlurmRules; }

}  // namespace stoker::diagnose
