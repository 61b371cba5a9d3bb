// Rules for Stoker's records and for messages of its programs.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kRecordRules[] = {
    {"rank-out-of-memory", root, "out of memory", R"(killed by signal 9.*, out of memory(?: \((.*)\))?)",
     "the kernel killed it: out of memory[[ ({1})]]",
     "request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "stoker report {run}",
     "rank 1 (n2) exited at epoch 3 step 118, phase backward: killed by signal 9 (SIGKILL), out of memory "
     "(cgroup limit "
     "32 GB)",
     "source of stoker"},
    {"trainer-out-of-memory", root, "out of memory on ",
     R"(out of memory on (.*) with (.*) samples? per rank \(train\.batch\)(?:: (.*))?)",
     "a batch of {2} does not fit into the memory of {1}[[: {3}]]",
     "halve `train.batch` and double `train.accumulate`: a step has as many samples; "
     "`stoker-train --find-batch` finds what fits",
     "",
     "epoch 1, step 7: out of memory on cuda:0 with 512 samples per rank (train.batch): 2.00 GiB more "
     "requested, "
     "1.20 GiB of 79.15 GiB free\n"
     "epoch 1, step 1: out of memory on the CPU with 1 sample per rank (train.batch)",
     "source of stoker"},
    {"validation-out-of-memory", root, "out of memory on ",
     R"(out of memory on (.*) with (.*) samples? per rank \(train\.validation_batch\)(?:: (.*))?)",
     "a validation batch of {2} does not fit into the memory of {1}[[: {3}]]",
     "halve `train.validation_batch`", "",
     "validation after epoch 1: out of memory on cuda:1 with 100 samples per rank (train.validation_batch): "
     "20.00 "
     "MiB more requested",
     "source of stoker"},
    {"model-out-of-memory", root, "out of memory on ",
     R"(out of memory on (.*) for the model and its optimizer \(train\.model\)(?:: (.*))?)",
     "the model and its optimizer do not fit into the memory of {1}[[: {2}]]",
     "use a smaller `train.model`, or stop other programs that use that memory", "",
     "out of memory on cuda:0 for the model and its optimizer (train.model): 2.00 GiB more requested, 1.20 "
     "GiB of "
     "79.15 GiB free",
     "source of stoker"},
    {"rank-never-started", root, "never started",
     R"(rank \d+ \(.*\) never started: (?:its node's torchrun exited: )?(.*))", "it could not start: {1}",
     "install the command of `run` on every node, or give its full path", "stoker check {started_from}",
     "rank 0 (n1) never started: execve trainer: No such file or directory", "source of stoker"},
    {"rank-missing", root, "timeouts.start",
     R"(rank \d+ \((.*?)\) did not join within (.*) \(timeouts\.start\))",
     "it did not connect from {1} within {2}: the node or its network is broken, or the start is slow", "",
     "stoker hello --nodes 2", "rank 3 (n2) did not join within 60 s (timeouts.start)", "source of stoker"},
    {"node-gone", outside, "acknowledges no packets",
     R"(rank \d+ \((.*?)\) sent no heartbeat for .*acknowledges no packets)", "node {1} or its link is down",
     "retry without that node: `--exclude={node}`", "stoker hello",
     "rank 3 (n2) sent no heartbeat for 60 s, and its host acknowledges no packets: the node or its link is "
     "down",
     "source of stoker"},
    {"rank-connection-broke", outside, "its connection broke",
     R"(rank \d+ \((.*?)\) was lost: its connection broke)",
     "node {1} went down, or the processes there were killed", "`stoker resume {run}`", "",
     "rank 3 (n2) was lost: its connection broke (node gone, or killed from outside)", "source of stoker"},
    {"rank-step-ended", ending,
     "was lost: ", R"(rank \d+ \((.*?)\) was lost: (?:srun|the `stoker rank` of torchrun) ended with (.*))",
     "its step on {1} ended before it reported an exit: {2}", "`stoker resume {run}`", "",
     "rank 0 (n1) was lost: srun ended with exit code 1", "source of stoker"},
    {"rank-ended-outside", ending, "was terminated externally",
     R"(rank \d+ \((.*?)\) was terminated externally: (.*))", "it was killed from outside on {1}: {2}",
     "`stoker resume {run}`", "", "rank 1 (n2) was terminated externally: killed by signal 15 (SIGTERM)",
     "source of stoker"},
    {kEndedEarly, effect, "had ended with exit code 0",
     R"(rank \d+ \(.*\) had ended with exit code 0, (.*) before rank \d+ failed)",
     "exited with code 0, {1} earlier: uneven numbers of batches, or an early return",
     "use the same number of batches on every rank (`drop_last=True`, or `join()` of DDP), and no return or "
     "exit on some ranks only",
     "", "rank 1 (n2) had ended with exit code 0, 4.1 s before rank 0 failed", "source of stoker"},
    {"rank-stopped", root, "timeouts.stopped",
     R"(was stopped by a signal \(state T\) for ([\d.]+ \w+(?: \d+ s)?).*\(timeouts\.stopped\))",
     "a signal (SIGSTOP, a debugger) stopped it for {1}", "`stoker resume {run}`", "",
     "rank 1 (n2) was stopped by a signal (state T) for 60 s at epoch 1 step 7, phase forward "
     "(timeouts.stopped)",
     "source of stoker"},
    {"supervisor-stalled", hang, "`stoker rank` hangs (", R"(rank \d+ \((.*?)\).*`stoker rank` hangs)",
     "its supervisor on {1} stalled: the node is overloaded, frozen, or its disk hangs", "", "stoker hello",
     "rank 1 (n2) sent no heartbeat for 60 s: its `stoker rank` hangs (timeouts.stall)", "source of stoker"},
    {"rank-silent", hang, "timeouts.stall", R"(made no progress for (\S+ [a-z]+).*\(timeouts\.stall\))",
     "it made no progress for {1}: it waits for other ranks, for data, or hangs in the file system",
     "increase `timeouts.stall` if such a pause is normal", "stoker top {run}",
     "rank 1 (n2) made no progress for 10 min at epoch 1 step 7, phase communication (timeouts.stall)",
     "source of stoker"},
    {"rank-apart", root, ", most ranks in ", R"(rank \d+ \((.*?)\) was in (.*), most ranks in (.*))",
     "on {1} it was in {2}, and most ranks waited in {3}",
     "read that line of the program: it waits for something, or its rank takes a different branch", "",
     "rank 1 (n2) was in load (data.py:12), most ranks in all_reduce (distributed_c10d.py:2810), called by "
     "step (train.py:40)",
     "source of stoker"},
    {"rank-place", root, " was in ", R"(^rank \d+ \((.*?)\) was in (.*\)))", "it waited in {2}",
     "read that line of the program: it waits for data, a file system or another program", "",
     "rank 0 (n1) was in Queue.get (queue.py:171), called by load (train.py:12)", "source of stoker"},
    {"ranks-same-place", root, "ranks were in ", R"(^all \d+ ranks were in (.*\))$)",
     "all ranks waited in {1}",
     "read that line of the program: it waits for data, a file system, or a process outside of the run", "",
     "all 8 ranks were in Queue.get (queue.py:171), called by load (train.py:12)", "source of stoker"},
    {"rank-behind", root, "has not reached",
     R"(rank (\d+)(?: \((?:pid \d+ )?on (.*?)\))? has not reached (.*?): its last collective was (.*))",
     "[[on {2} ]]it never joined {3}, which its peers wait in: its last collective was {4}",
     "check what that rank did next: a different branch of the code, a swallowed exception, a slow reader",
     "stoker top {run}",
     "rank 1 (pid 42 on node3) has not reached all-reduce 118 of float32 [272474]: its last collective was "
     "broadcast "
     "117 of uint8 "
     "[6016], done\n"
     "rank 2 has not reached all-gather 3 of bfloat16 [512]: its last collective was all-reduce 2 of "
     "bfloat16 [1024, "
     "8], done (at train.py:88)",
     "source of stoker"},
    {kUnknownPosition, hang, "its peers wait in",
     R"(rank (\d+)(?: \((?:pid \d+ )?on (.*?)\))? has (?:left no dump of its collectives|reported no timeout); its peers wait in (.*))",
     "[[on {2} ]]it has reported nothing, and probably never joined {3}, which its peers wait in",
     "check what that rank did next: a different branch of the code, a swallowed exception, a slow reader",
     "stoker top {run}",
     "rank 3 has left no dump of its collectives; its peers wait in all-reduce 57 of float32 [8]\n"
     "rank 3 has reported no timeout; its peers wait in all-reduce 57 of 25 elements",
     "source of stoker"},
    {"rank-not-begun", root, "has started no collective",
     R"(rank (\d+)(?: \((?:pid \d+ )?on (.*?)\))? has started no collective; its peers have reached (.*))",
     "[[on {2} ]]it started no collective, and its peers wait in {3}",
     "check what that rank does before its first collective: reading data, building the model, a different "
     "branch",
     "stoker top {run}",
     "rank 1 (pid 42 on node3) has started no collective; its peers have reached all-reduce 1 of float32 "
     "[272474]",
     "source of stoker"},
    {"rank-elsewhere", root, ", others in ",
     R"(rank (\d+)(?: \((?:pid \d+ )?on (.*?)\))? is in (.*), others in (.*))",
     "[[on {2} ]]it called {3}, and its peers called {4}: their code or shapes differ by rank",
     "make the same calls with the same shapes in the same order on every rank", "",
     "rank 1 (pid 42 on node3) is in broadcast 118 of uint8 [6016], others in all-reduce 118 of float32 "
     "[272474]",
     "source of stoker"},
    {"rank-straggler", effect, " after rank ",
     R"(rank (\d+) \(pid \d+ on (.*?)\) reached (.*?) ([\d.]+ \S+(?: \d+ \S+)?) after rank \d+)",
     "on {2} it joined {3} {4} after its peers, which waited", "", "stoker top {run}",
     "rank 2 (pid 42 on n2) reached all-reduce 15 of float32 [272474] 7.1 s after rank 0",
     "source of stoker"},
    {"collective-not-ended", effect, "but it has not completed\nranks were in",
     R"(all \d+ ranks (?:have reached|were in) (.*?)(, but it has not completed| for \S+ \S+.*))",
     "all ranks were in {1}{2}", "", "stoker hello",
     "all 3 ranks have reached all-reduce 118 of float32 [272474], but it has not completed\n"
     "all 3 ranks were in all-reduce 15 of float32 [272474] for 7.1 s",
     "source of stoker"},
    {"hosts-unreachable", root, "waits for other hosts in",
     R"(rank \d+ \(pid \d+ on (.*?)\) waits for other hosts in (.*?),)",
     "all ranks joined {2}, and those on {1} wait for other hosts: the network between them", "",
     "stoker hello --nodes 2",
     "rank 0 (pid 42 on n1) waits for other hosts in all-reduce 3 of float32 [8], which all ranks have "
     "reached",
     "source of stoker"},
    {"master-not-there", root, "(of ", R"(rank (\d+) did not connect to (\S+) within (.*) \(of \d+ ranks\))",
     "rank {1} did not connect to {2} within {3}", "read its log", "stoker hello",
     "rank 3 did not connect to 10.0.0.1:29500 within 60 s (of 8 ranks)", "source of stoker"},
    {"rank-0-unreachable", root, "did not open",
     R"(rank 0 did not open (\S+) within (.*) \(last answer: (.*)\))",
     "rank 0 did not open {1} within {2}: it is slow, has failed, or the address is wrong (last answer: {3})",
     "read the log of rank 0", "stoker hello",
     "rank 0 did not open 10.0.0.1:29500 within 60 s (last answer: Connection refused)", "source of stoker"},
    {"data-too-slow", root, "(timeouts.data", R"((.*) \(timeouts\.data: (.*)\))",
     "no batch arrived within {2}: reading the data is too slow, or its file system hangs",
     "copy the data to the local disks, `stage: {copy: [FOLDER]}`, or increase `timeouts.data`",
     "stoker data bench DATASET", "train-000003.tar: no batch came (timeouts.data: 60 s)",
     "source of stoker"},
    {"interface-not-there", root, "does not name an interface that is up",
     R"((\S+)=(\S+) does not name an interface that is up \(there are (.*?)[;)])",
     "{1} names {2}, and no such interface is up: available are {3}",
     "set {1} to one of these, or do not set it: Stoker then chooses one", "stoker hello {started_from}",
     "rank 0 (n1, process 4711): GLOO_SOCKET_IFNAME=eth7 does not name an interface that is up (there are "
     "lo, eth0; "
     "unset it to choose automatically)",
     "source of stoker"},
    {"own-port-taken", root, "in use by another program on this host",
     R"(port (\d+): in use by another program on this host)",
     "port {1} is in use by another program on that node",
     "do not set `MASTER_PORT`: the run then uses a free one", "stoker hello {started_from}",
     "rank 0 (n1, process 4711): port 29500: in use by another program on this host (MASTER_PORT; unset it "
     "to "
     "use a free port)",
     "source of stoker"},
    {"xid-fell-off-bus", root, "reported Xid", R"(^GPU (\d+) \(([\w.-]+)[,)].* reported Xid 79\b)",
     "GPU {1} of {2} has fallen off the bus (Xid 79)",
     "leave that node out (`--exclude={node}`) and inform the administrators", "nvidia-smi -q",
     "GPU 0 (n1, 00000000:3B:00.0) reported Xid 79: it has fallen off the bus", "source of stoker"},
    {"xid-memory", root, "reported Xid",
     R"(^GPU (\d+) \(([\w.-]+)[,)].* reported Xid (48|64|92|94|95|140)\b)",
     "GPU {1} of {2} has damaged memory (Xid {3})",
     "leave that node out (`--exclude={node}`) and inform the administrators", "nvidia-smi -q -d ECC",
     "GPU 3 (n1, 00000000:3B:00.0) reported Xid 94: uncorrectable memory error, contained to the programs on "
     "it\n"
     "GPU 0 (n1) reported Xid 48: uncorrectable memory error (double-bit ECC)",
     "source of stoker"},
    {"xid-memory-replaced", slow, "reported Xid", R"(^GPU (\d+) \(([\w.-]+)[,)].* reported Xid 63\b)",
     "GPU {1} of {2} has damaged memory, which its next reset replaces (Xid 63)",
     "inform the administrators: the GPU needs a reset", "nvidia-smi -q -d ROW_REMAPPER",
     "GPU 0 (n1, 00000000:3B:00.0) reported Xid 63: damaged memory was marked for replacement at the next "
     "GPU "
     "reset",
     "source of stoker"},
    {"xid-nvlink", root, "reported Xid", R"(^GPU (\d+) \(([\w.-]+)[,)].* reported Xid 74\b)",
     "an NVLink connection of GPU {1} of {2} failed (Xid 74)",
     "leave that node out (`--exclude={node}`) and inform the administrators", "nvidia-smi nvlink -e",
     "GPU 0 (n1, 00000000:3B:00.0) reported Xid 74: NVLink error", "source of stoker"},
    {"xid-firmware", root, "reported Xid", R"(^GPU (\d+) \(([\w.-]+)[,)].* reported Xid (61|62|119|120)\b)",
     "the firmware of GPU {1} of {2} failed (Xid {3})",
     "leave that node out (`--exclude={node}`) and inform the administrators", "nvidia-smi -q",
     "GPU 0 (n1, 00000000:3B:00.0) reported Xid 119: its firmware (GSP) did not respond", "source of stoker"},
    {"xid-program", general, "reported Xid", R"(^GPU (\d+) \(([\w.-]+)[,)].* reported Xid (13|31|32|43)\b)",
     "a kernel of the program failed on GPU {1} of {2}, usually because of an invalid address (Xid {3})",
     "`CUDA_LAUNCH_BLOCKING=1` shows the call; `compute-sanitizer python` checks the kernel", "",
     "GPU 0 (n1, 00000000:3B:00.0) reported Xid 31: a program accessed an invalid address\n"
     "GPU 0 (n1) reported Xid 13: a kernel failed, usually an address out of range",
     "source of stoker"},
    {"xid-cleanup", effect, "reported Xid", R"(^GPU (\d+) \(([\w.-]+)[,)].* reported Xid 45\b)",
     "the driver removed a program's work from GPU {1} of {2} (Xid 45)", "", "",
     "GPU 0 (n1) reported Xid 45: the driver removed a program's work after an earlier error or its end",
     "source of stoker"},
    {"xid-other", general, "reported Xid", R"(^GPU (\d+) \(([\w.-]+)[,)].* reported Xid (\d+))",
     "GPU {1} of {2} reported Xid {3}", "search for Xid {3} in NVIDIA's list of Xid errors", "nvidia-smi -q",
     "GPU 0 (n1) reported Xid 999: see NVIDIA's list of Xid errors", "source of stoker"},
    {"checkpoint-torn", root, "so it is not a whole checkpoint",
     R"((\S+): has no manifest, so it is not a whole)",
     "checkpoint {1} is incomplete: its writer was stopped early",
     "use an earlier step: `stoker checkpoint list {run}`", "stoker checkpoint verify {1}",
     "ckpt/step-100: has no manifest, so it is not a whole checkpoint", "source of stoker"},
    {"checkpoint-damaged", root, "damaged between bytes", R"((\S+): .*damaged between bytes (\d+) and (\d+))",
     "file {1} of a checkpoint is damaged between bytes {2} and {3}",
     "use an earlier step: `stoker checkpoint list {run}`", "stoker checkpoint verify {run}",
     "ckpt/step-100/model/rank-0.safetensors: damaged between bytes 4096 and 8192 (crc32c 1, expected 2)",
     "source of stoker"},
    {"checkpoint-of-another-model", root, "does not fit the model", R"((\S+): does not fit the model: (.*))",
     "checkpoint {1} belongs to a different model: {2}",
     "use the model settings of the checkpoint, or change `checkpoint.directory`",
     "stoker checkpoint list {1}", "ckpt/step-100: does not fit the model: 'fc.weight' is [10, 512]",
     "source of stoker"},
    {"state-out-of-memory", root, "state: out of memory", "",
     "the job used more memory than requested and was killed",
     "request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "", "state: out of memory", "source of stoker"},
    {"time-limit-reached", outside, "time limit ", R"(time limit (.*?) \(([a-z_]+\.[a-z_]+)\))",
     "its time limit was reached: {1} ({2})",
     "increase `{2}`, or use a chain of jobs that resume from checkpoints: `chain: {until: done, "
     "time_per_link: 20h}`",
     "stoker report {run}", "time limit 2h (resources.time)", "source of stoker"},
    {"state-timeout", outside, "state: timeout", "", "its time limit was reached",
     "request more time, or save a checkpoint before the end: `#SBATCH --signal=B:USR1@120`, and a trap for "
     "it in the script",
     "", "state: timeout", "source of stoker"},
    {"state-preempted", outside, "state: preempted", "", "preempted by a job of higher priority",
     "use checkpoints and `#SBATCH --requeue`: the job restarts, and the program resumes from the last one",
     "", "state: preempted", "source of stoker"},
    {"state-node-failed", outside, "state: node failed", "", "it lost a node",
     "retry without that node: `--exclude={node}`", "", "state: node failed", "source of stoker"},
    {"state-cancelled", outside, "state: cancelled", R"(state: cancelled(?: \((.*)\))?)",
     "it was cancelled {1}", "", "", "state: cancelled (by user 1000)", "source of stoker"},
    {"state-lost", outside, "state: lost", "",
     "its supervisor disappeared without a status: it was killed, or its machine went down",
     "`stoker resume {run}`", "", "state: lost", "source of stoker"},
};

constexpr FailureRule kReportedReasons[] = {
    {"own-error", general, "(in its own words)", R"(^(.*?) ?\(in its own words\)$)",
     "the program reports: {1}", "", "", "no class 8 in the data (in its own words)",
     "source of many programs", kScriptEnds, kFitsSeveral},
    {"own-usage", general, "(its usage)", R"(^(.*?) ?\(its usage\)$)",
     "the program got wrong arguments, or none, and printed its usage: {1}",
     "compare the line of the script that starts it: an argument is missing, or a variable in it is empty",
     "", "Usage: tool CONFIG FOLDER (its usage)", "source of many programs", kScriptEnds, kFitsSeveral},
    {"rank-reported", general, ", process ", R"(^rank \d+ \(\S+, process \d+\): (.*))", "{1}", "", "",
     "rank 0 (n1, process 4711): was started with a world size of 1, this run has 4", "source of stoker"},
};

}  // namespace

std::span<const FailureRule> record_rules() { return kRecordRules; }

std::span<const FailureRule> reported_reason_rules() { return kReportedReasons; }

}  // namespace stoker::diagnose
