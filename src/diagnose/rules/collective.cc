// Rules for collectives: missing ranks, mismatches, and their consequences.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kCollectiveRules[] = {
    {"collectives-differ", root, "Detected mismatch between collectives\nMismatched collective detected",
     R"(Detected mismatch between collectives on ranks\. Rank (\d+) is running collective: (.*?), but Rank (\d+)|Mismatched collective detected)",
     "ranks {1} and {3} called different collectives: their code or shapes differ by rank",
     "make the same calls with the same shapes in the same order on every rank",
     "export TORCH_DISTRIBUTED_DEBUG=DETAIL",
     "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: "
     "CollectiveFingerPrint(SequenceNumber=7), but Rank 1 is running collective: "
     "CollectiveFingerPrint(SequenceNumber=8)",
     "pytorch/pytorch#100207"},
    {"gloo-sizes-differ", root, "op.preamble.length",
     R"(op\.preamble\.length <= op\.nbytes\. (\d+) vs (\d+))",
     "ranks passed tensors of different sizes to one collective ({1} and {2} bytes)",
     "use equal shapes and dtypes on all ranks: check uneven last batches (`drop_last`) and branches by rank",
     "",
     "terminate called after throwing an instance of 'gloo::EnforceNotMet' what(): [enforce fail at "
     "../third_party/gloo/gloo/transport/tcp/pair.cc:446] op.preamble.length <= op.nbytes. 20 vs 12",
     "source of gloo, pair.cc"},
    {"monitored-barrier", root, "failed to pass monitoredBarrier",
     R"(Ranks? ([\d, ]+) failed to pass monitoredBarrier in (\d+) ms)",
     "rank {1} did not reach the barrier within {2} ms", "read the log of rank {1}", "stoker hello",
     "RuntimeError: [Rank 0]: Ranks 1 failed to pass monitoredBarrier in 3000 ms",
     "source of PyTorch, ProcessGroupGloo.cpp"},
    {"models-differ", root, "DDP expects same model",
     R"(DDP expects same model across all ranks, but Rank (\d+) has (\d+) params, while rank (\d+) has inconsistent (\d+))",
     "rank {1} has a model with {2} parameters, rank {3} one with {4}",
     "use the same configuration and code on all ranks", "",
     "RuntimeError: DDP expects same model across all ranks, but Rank 0 has 62 params, while rank 1 has "
     "inconsistent 60 "
     "params.",
     "source of PyTorch, reducer.cpp"},
    {"shapes-differ", root, "appears not to match",
     R"(params\[(\d+)\] in this process with sizes \[([^\]]*)\] appears not to match)",
     "parameter {1} has a different shape on a different rank (here [{2}])",
     "use the same configuration and data on all ranks", "",
     "RuntimeError: [1]: params[0] in this process with sizes [10, 5] appears not to match sizes of the same "
     "param in process 0.",
     "source of PyTorch, reducer.cpp"},
    {"unused-parameters", root,
     "finished reduction in the prior iteration\nparameters that were not used in producing", "",
     "some parameters do not contribute to the loss, and DDP waits for their gradients",
     "`DistributedDataParallel(model, find_unused_parameters=True)`, in Lightning "
     "`strategy='ddp_find_unused_parameters_true'`, or remove these parameters",
     "export TORCH_DISTRIBUTED_DEBUG=DETAIL",
     "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. "
     "This error "
     "indicates that your module has parameters that were not used in producing loss.\n"
     "RuntimeError: It looks like your LightningModule has parameters that were not used in producing the "
     "loss "
     "returned by training_step.",
     "pytorch/pytorch#43259"},
    {"graph-changed", root, "training graph has changed", "",
     "the graph changes between steps, but static_graph=True", "`static_graph=False`", "",
     "RuntimeError: Your training graph has changed in this iteration, e.g., one parameter is used in first "
     "iteration, but "
     "then got unused in the second iteration. this is not compatible with static_graph set to True.",
     "source of PyTorch, reducer.cpp"},
    {"ready-twice", root, "mark a variable ready only once", "",
     "a parameter got its gradient twice in one step: it is shared, or used in reentrant checkpointing",
     "`checkpoint(function, inputs, use_reentrant=False)`, or `static_graph=True`", "",
     "RuntimeError: Expected to mark a variable ready only once. This error is caused by one of the "
     "following reasons",
     "pytorch/pytorch#62292"},
    {"views-in-place", root, "Can't detach views in-place", "",
     "zero_grad in C++ cannot clear gradients that are views of buckets",
     "`gradient_as_bucket_view=False`, or set the gradients to undefined", "",
     "RuntimeError: Can't detach views in-place. Use detach() instead. If you are using "
     "DistributedDataParallel (DDP) for "
     "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets",
     "source of PyTorch, variable.cpp"},
    {"horovod-stall", hang, "Missing ranks", R"(Missing ranks:? ?(.*))",
     "ranks wait in a collective for missing peers[[: {1}]]", "read the logs of the missing ranks", "",
     "One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks. Missing "
     "ranks: 3",
     "horovod/horovod, stall_inspector.cc"},
    {kWatchdogTimeout, hang, "Watchdog caught collective operation timeout",
     R"(WorkNCCL\(SeqNum=(\d+), OpType=(\w+),(?: NumelIn=(\d+),)?.*Timeout\(ms\)=(\d+)\))",
     "a rank did not join {2} number {1}[[ of size {3}]] within {4} ms, and its peers timed out",
     "find the rank with the lowest collective number; increase the timeout only for known long waits", "",
     "[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1203, OpType=ALLREDUCE, "
     "NumelIn=25, "
     "NumelOut=25, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n"
     "[rank3]:[E710 18:00:32.426182607 ProcessGroupNCCL.cpp:757] [Rank 3] Watchdog caught collective "
     "operation "
     "timeout: WorkNCCL(SeqNum=59958, OpType=_ALLGATHER_BASE, NumelIn=8388608, NumelOut=8388608, "
     "Timeout(ms)=1800000) ran for 1800077 milliseconds before timing out.",
     "hiyouga/LLaMA-Factory#7396"},
    {"gloo-timeout", hang, "Timed out waiting",
     R"(Timed out waiting (\d+)ms for (recv|send) operation to complete)",
     "a rank did not join a collective within {1} ms, and its peers timed out",
     "make the same collective calls on all ranks: as many batches, and no evaluation on one rank only; "
     "otherwise find "
     "the rank whose log ends first",
     "stoker top {run}",
     "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting "
     "1800000ms for recv "
     "operation to complete",
     "source of gloo, unbound_buffer.cc"},
    {"watchdog-stuck", hang, "without making progress",
     R"(watchdog got stuck for (\d+) seconds without making progress)",
     "a call of CUDA or NCCL did not return for {1} s",
     "read earlier lines of the other ranks: they usually have the reason", "",
     "[PG 0 (default_pg) Rank 3] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making "
     "progress in monitoring "
     "enqueued collectives.",
     "pytorch/pytorch#128751"},
    {kWatchdogPosition, effect, "last enqueued\nLast enqueued",
     R"(^(?:.*?\[PG (?:ID )?(\w+)[^\]]*\])?.*[Ll]ast enqueued (?:NCCL )?work: (-?\d+),.* last completed (?:NCCL )?work: (-?\d+))",
     "the rank had started collective {2} and completed {3}", "", "",
     "[PG ID 0 PG GUID 0(default_pg) Rank 1] Timeout at NCCL work: 1203, last enqueued NCCL work: 1203, last "
     "completed NCCL work: "
     "1202.\n"
     "[rank1]:[E813 12:25:30.692163833 ProcessGroupNCCL.cpp:2271] [PG ID 1 PG GUID 1 Rank 1]  failure "
     "detected by "
     "watchdog at work sequence id: 57 PG status: last enqueued work: 57, last completed work: 56\n"
     "[PG ID 0 PG GUID 0(default_pg) Rank 2]  failure detected by watchdog at work sequence id: 18 PG "
     "status: last "
     "enqueued work: 39, last started work: 19 (_ALLGATHER_BASE), last completed work: 17\n"
     "[rank5]:[E703 19:54:01.074864660 ProcessGroupNCCL.cpp:1987] [PG ID 0 PG GUID 0(default_pg) Rank 5] "
     "Received a "
     "dump signal due to a collective timeout from  rank 7 and we will try our best to dump the debug info. "
     "Last "
     "enqueued NCCL work: 56116, last completed NCCL work: 56116.This is most likely caused by incorrect "
     "usages of "
     "collectives",
     "XPixelGroup/BasicSR#737; hiyouga/LLaMA-Factory#7396; source of PyTorch, ProcessGroupNCCL.cpp"},
    // With TORCH_NCCL_DESYNC_DEBUG.
    {"desync-report", root, "but didn't join collective",
     R"(\[([\d, ]+)\] finished collective #(\d+), but didn't join collective #(\d+))",
     "rank {1} finished collective {2}, and did not join collective {3}",
     "check what that rank did next: a different branch of the code, a swallowed exception, a slow reader",
     "", "\t   - [1] finished collective #2, but didn't join collective #3 (count from 1)",
     "source of PyTorch, TraceUtils.h"},
    {"gloo-peer-closed", effect, "Connection closed by peer\nConnection reset by peer",
     R"((?:Connection closed by peer \[?([^\]\s]+)\]?|Read error \[?([^\]\s]+)\]?:?\d*: Connection reset by peer|Connection reset by peer))",
     "the connection to a peer broke: the peer ended first", "", "",
     "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
     "[10.0.0.2]:44750\n"
     "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:544] Read error [127.0.0.1]:44750: "
     "Connection reset by peer",
     "source of gloo, pair.cc"},
    {"gloo-pair-closure", effect, "Application timeout caused pair closure", "",
     "the connection was closed after a different operation timed out", "", "",
     "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:136] Application timeout "
     "caused pair closure",
     "source of gloo, pair.cc"},
    {"stop-from-peer", effect, "abort process\ntear down the\nentire process down\nbring down the", "",
     "the rank was stopped after the failure of a peer", "", "",
     "[Rank 0] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA "
     "kernels, subsequent GPU "
     "operations might run on corrupted/incomplete data. To avoid data inconsistency, we are taking the "
     "entire process down.\n"
     "[Rank 1] To avoid data inconsistency, we are taking the entire process down.",
     "source of PyTorch, ProcessGroupNCCL.cpp"},
    {"broken-pipe", effect, "BrokenPipeError\nConnectionResetError\nEOFError",
     R"(^(?:(?:BrokenPipeError|ConnectionResetError)(?:: \[Errno (?:32|104)\].*|: \(?104, .*)?$|EOFError(?:: Ran out of input)?\s*$))",
     "a connected process exited",
     "read the log of that process; if it is `head` or a pager, write the output to a file instead", "",
     "BrokenPipeError: [Errno 32] Broken pipe\nEOFError", "source of CPython"},
};

}  // namespace

std::span<const FailureRule> collective_rules() { return kCollectiveRules; }

}  // namespace stoker::diagnose
