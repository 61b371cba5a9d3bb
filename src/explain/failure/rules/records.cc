// Rules over what Stoker's own records say of a run, and over what its programs print.
#include "explain/failure/rule.h"

namespace stoker::explain {
namespace {

using enum Weight;

constexpr FailureRule kRules[] = {
    {"rank-out-of-memory", root, "out of memory", R"(killed by signal 9.*, out of memory(?: \((.*)\))?)",
     "the kernel killed it: it took more memory than the job has {1}",
     "resources: {memory_per_node: ...} with more, fewer loader workers, or a smaller batch",
     "stoker report last",
     "rank 1 (n2) left at epoch 3 step 118, phase backward: killed by signal 9 (SIGKILL), out of memory "
     "(cgroup limit "
     "32 GB)",
     "source of stoker"},
    {"rank-never-started", root, "never started",
     R"(rank \d+ \(.*\) never started: (?:its node's torchrun left: )?(.*))", "it could not be started: {1}",
     "the command under run: has to be there on every node", "stoker check job.yaml",
     "rank 0 (n1) never started: execve trainer: No such file or directory", "source of stoker"},
    {"rank-did-not-come", root, "timeouts.start",
     R"(rank \d+ \((.*?)\) did not come within (.*) \(timeouts\.start\))",
     "it did not come from {1} within {2}: its node or the way to it is broken, or its start is slow", "",
     "stoker hello --nodes 2", "rank 3 (n2) did not come within 60 s (timeouts.start)", "source of stoker"},
    {"node-gone", outside, "acknowledges no packet",
     R"(rank \d+ \((.*?)\) gave no sign for .*acknowledges no packet)", "node {1} or its link is gone",
     "slurm: {extra: [--exclude=NODE]}, then stoker resume", "stoker hello",
     "rank 3 (n2) gave no sign for 60 s, and its host acknowledges no packet: the node or its link is gone",
     "source of stoker"},
    {"rank-connection-broke", outside, "its connection broke",
     R"(rank \d+ \((.*?)\) was lost: its connection broke)",
     "the node {1} went away, or somebody killed what ran there", "stoker resume last", "",
     "rank 3 (n2) was lost: its connection broke (node gone, or killed from outside)", "source of stoker"},
    {"rank-stopped", root, "timeouts.stopped",
     R"(was stopped by a signal \(state T\) for (.*?) .*\(timeouts\.stopped\))",
     "somebody stopped it by a signal (SIGSTOP, a debugger), and it stood still for {1}",
     "stoker resume last", "",
     "rank 1 (n2) was stopped by a signal (state T) for 60 s at epoch 1 step 7, phase forward "
     "(timeouts.stopped)",
     "source of stoker"},
    {"supervisor-stands-still", hang, "stands still (timeouts",
     R"(rank \d+ \((.*?)\).*`stoker rank` stands still)",
     "what watches it on {1} stood still: the node is overloaded, frozen, or its disk hangs", "",
     "stoker hello", "rank 1 (n2) gave no sign for 60 s: its `stoker rank` stands still (timeouts.stall)",
     "source of stoker"},
    {"rank-silent", hang, "timeouts.stall", R"(made no progress for (\S+ \S+).*\(timeouts\.stall\))",
     "it made no progress for {1}: it waits for other ranks, for data, or hangs in the file system",
     "timeouts: {stall: ...} with more, where such a pause is right", "stoker top last",
     "rank 1 (n2) made no progress for 10 min at epoch 1 step 7, phase communication (timeouts.stall)",
     "source of stoker"},
    {"rank-behind", root, "has not come to",
     R"(rank (\d+) \(pid \d+ on (.*?)\) has not come to (.*?): its last was (.*))",
     "rank {1} on {2} never came to {3}, for which the others wait: its last was {4}",
     "look at what that rank did then: another branch of the code, an exception swallowed, a slow reader",
     "stoker top last",
     "rank 1 (pid 42 on node3) has not come to all-reduce 118 of float32 [272474]: its last was broadcast "
     "117 of uint8 "
     "[6016], done",
     "source of stoker"},
    {"rank-elsewhere", root, ", others in ", R"(rank (\d+) \(pid \d+ on (.*?)\) is in (.*), others in (.*))",
     "rank {1} on {2} called {3} where the others called {4}: their code or shapes differ by rank",
     "the same calls with the same shapes, in the same order, on every rank", "",
     "rank 1 (pid 42 on node3) is in broadcast 118 of uint8 [6016], others in all-reduce 118 of float32 "
     "[272474]",
     "source of stoker"},
    {"hosts-do-not-meet", root, "waits for other hosts in",
     R"(rank \d+ \(pid \d+ on (.*?)\) waits for other hosts in (.*?),)",
     "all ranks came to {2}, and those of {1} wait for other hosts: the network between them", "",
     "stoker hello --nodes 2",
     "rank 0 (pid 42 on n1) waits for other hosts in all-reduce 3 of float32 [8], to which all ranks have "
     "come",
     "source of stoker"},
    {"master-not-there", root, "(of ", R"(rank (\d+) did not come to (\S+) within (.*) \(of \d+ ranks\))",
     "rank {1} did not come to {2} within {3}", "its own log says why", "stoker hello",
     "rank 3 did not come to 10.0.0.1:29500 within 60 s (of 8 ranks)", "source of stoker"},
    {"rank-0-not-there", root, "did not open",
     R"(rank 0 did not open (\S+) within (.*) \(last answer: (.*)\))",
     "rank 0 did not open {1} within {2}: it is late, has failed, or the address is wrong (last answer: {3})",
     "the log of rank 0 says which", "stoker hello",
     "rank 0 did not open 10.0.0.1:29500 within 60 s (last answer: Connection refused)", "source of stoker"},
    {"data-too-slow", root, "(timeouts.data", R"((.*) \(timeouts\.data: (.*)\))",
     "no batch came within {2}: the data is not read fast enough, or its file system hangs",
     "data: {train: {place: local}}", "stoker data bench DATASET",
     "train-000003.tar: no batch came (timeouts.data: 60 s)", "source of stoker"},
    {"interface-not-there", root, "names no interface that is up",
     R"((\S+)=(\S+) names no interface that is up \(there are (.*?)[;)])",
     "{1} names {2}, and there is no such interface that is up: there are {3}",
     "environment: {variables: {...}} with one of these, or without that variable: it is chosen then",
     "stoker hello job.yaml",
     "rank 0 (n1, process 4711): GLOO_SOCKET_IFNAME=eth7 names no interface that is up (there are lo, eth0; "
     "left out, it is chosen for you)",
     "source of stoker"},
    {"own-port-taken", root, "taken by another program on this host",
     R"(port (\d+): taken by another program on this host)",
     "port {1} is taken by another program on that node", "without MASTER_PORT: the run takes a free one",
     "stoker hello job.yaml",
     "rank 0 (n1, process 4711): port 29500: taken by another program on this host (MASTER_PORT; left out, "
     "the "
     "run takes a free one)",
     "source of stoker"},
    {"checkpoint-torn", root, "so it is not a whole checkpoint\nits manifest",
     R"((\S+): has no manifest, so it is not a whole)",
     "checkpoint {1} is not whole: its writer was ended before it was done",
     "an earlier step: stoker checkpoint list", "stoker checkpoint verify {1}",
     "ckpt/step-100: has no manifest, so it is not a whole checkpoint", "source of stoker"},
    {"checkpoint-damaged", root, "damaged between bytes", R"((\S+): .*damaged between bytes (\d+) and (\d+))",
     "file {1} of a checkpoint is damaged between bytes {2} and {3}",
     "an earlier step: stoker checkpoint list", "stoker checkpoint verify --help",
     "ckpt/step-100/model/rank-0.safetensors: damaged between bytes 4096 and 8192 (crc32c 1, expected 2)",
     "source of stoker"},
    {"checkpoint-of-another-model", root, "does not fit the model", R"((\S+): does not fit the model: (.*))",
     "checkpoint {1} is of another model: {2}",
     "the model's settings of then, or another checkpoint.directory", "stoker checkpoint list {1}",
     "ckpt/step-100: does not fit the model: 'fc.weight' is [10, 512]", "source of stoker"},
    {"state-out-of-memory", root, "state: out of memory", "",
     "the job took more memory than it asked for, and was killed",
     "#SBATCH --mem=... with more, fewer loader workers, or a smaller batch", "", "state: out of memory",
     "source of stoker"},
    {"time-over", outside, " is over (", R"(time (.*?) is over \(([a-z_]+\.[a-z_]+)\))",
     "its time was over: {1} ({2})",
     "{2} with more, or a chain that goes on from checkpoints: chain: {until: done}", "stoker report last",
     "time 2h is over (resources.time)", "source of stoker"},
    {"state-timeout", outside, "state: timeout", "", "its time limit was over",
     "more --time, or a chain that goes on from checkpoints: chain: {until: done}", "", "state: timeout",
     "source of stoker"},
    {"state-preempted", outside, "state: preempted", "", "a job of higher priority took its nodes",
     "checkpoints, and --requeue: the job goes on from the last one", "", "state: preempted",
     "source of stoker"},
    {"state-node-failed", outside, "state: node failed", "", "a node of it was lost",
     "the same again on other nodes: --exclude=NODE", "", "state: node failed", "source of stoker"},
    {"state-cancelled", outside, "state: cancelled", R"(state: cancelled(?: \((.*)\))?)",
     "it was cancelled {1}", "", "", "state: cancelled (by user 1000)", "source of stoker"},
    {"state-lost", outside, "state: lost", "",
     "its supervisor is gone and left no word: killed by force, or its machine went down",
     "stoker resume last", "", "state: lost", "source of stoker"},
};

constexpr FailureRule kOwnWords[] = {
    {"rank-said", general, ", process ", R"(^rank \d+ \(\S+, process \d+\): (.*))", "{1}", "", "",
     "rank 0 (n1, process 4711): is in a world of 1, this run has 4", "source of stoker"},
};

}  // namespace

std::span<const FailureRule> record_rules() { return kRules; }

std::span<const FailureRule> own_word_rules() { return kOwnWords; }

}  // namespace stoker::explain
