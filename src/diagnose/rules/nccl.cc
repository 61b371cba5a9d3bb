// Rules for messages of NCCL 2.7 to 2.30.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kNcclRules[] = {
    {"duplicate-gpu", root, "Duplicate GPU detected\nsame GPU/Partition",
     R"(Duplicate GPU detected ?: rank (\d+) and rank (\d+) both on CUDA device (\w+)|Multiple Ranks are using the same GPU)",
     "two ranks use the same GPU[[: {1} and {2}]]",
     "`torch.cuda.set_device(int(os.environ['LOCAL_RANK']))`, and request as many tasks per node as GPUs",
     "stoker hello",
     "NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000\n"
     "NCCL WARN Multiple Ranks are using the same GPU/Partition",
     "volcengine/verl#161"},
    {"nccl-shm-attach", root, "Error while attaching to shared memory segment",
     R"(attaching to shared memory segment (\S+))",
     "NCCL cannot open {1} of a rank on the same host: containers without a shared /dev/shm, or equal host "
     "names",
     "use one container for all ranks of a node, or a different `NCCL_HOSTID` for each", "",
     "NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-abc (size 0)",
     "vllm-project/vllm#18831"},
    {"ib-retry-exceeded", root, "Got completion",
     R"(Got completion (?:from peer (\S+) )?with (?:error |status=(?:\w+\()?)12\b)",
     "InfiniBand sends[[ to {1}]] failed after all retries: wrong link, route or (RoCE) GID index",
     "set `NCCL_IB_HCA` to working ports (with RoCE also `NCCL_IB_GID_INDEX=3`), and inform the "
     "administrators",
     "stoker hello --nodes 2",
     "NCCL WARN NET/IB : Got completion from peer 10.148.7.3<40123> with error 12, opcode 0, len 0, vendor "
     "err 129\n"
     "NCCL WARN NET/IB: Got completion from peer 10.0.0.2<4> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=0",
     "NVIDIA/nccl#902"},
    {"ib-flushed", effect, "Got completion",
     R"(Got completion (?:from peer (\S+) )?with (?:error |status=(?:\w+\()?)5\b)",
     "InfiniBand dropped its queued sends[[ to {1}]] after an error", "", "",
     "NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4> with error 5, opcode 48",
     "pytorch/pytorch#122571"},
    {"ib-async-event", root, "async fatal event\nasync error event\nGot async event",
     R"(NET/IB ?: (?:(\S+):\d+ )?(?:async fatal event|Got async error event|Got async event) ?:? ?(.*))",
     "an InfiniBand adapter[[ ({1})]] reported an error[[: {2}]]",
     "leave that node out (`--exclude={node}`); `ibstat` there shows its ports", "",
     "NCCL WARN NET/IB : mlx5_0:1 Got async error event: port error\n"
     "NCCL WARN NET/IB : Got async event : port error",
     "NVIDIA/nccl#905"},
    {"ib-mixed", root, "incompatible devices", R"(Attempted to (?:connect|merge) incompatible devices)",
     "one connection mixes InfiniBand and RoCE adapters", "set `NCCL_IB_HCA` to adapters of one type",
     "stoker hello",
     "NCCL WARN NET/IB : Attempted to connect incompatible devices mlx5_0:1/IB and mlx5_1:1/RoCE",
     "source of NCCL 2.27, net_ib.cc"},
    {"no-nccl-interface", root,
     "no socket interface found\nNo usable listening interface\nNCCL_OOB_NET_IFNAME\nis neither AF_INET",
     R"(no socket interface found|No usable listening interface found|no device found (?:matching|after excluding) .*NCCL_OOB_NET_IFNAME|ncclSocketInit: connecting to address .*is neither AF_INET)",
     "NCCL found no network interface: the one in NCCL_SOCKET_IFNAME does not exist",
     "set `NCCL_SOCKET_IFNAME` to a name from `ip -br addr` on that node, or unset it", "stoker hello",
     "NCCL WARN Bootstrap : no socket interface found\nNCCL WARN NET/Socket : No usable listening interface "
     "found\n"
     "ncclSocketInit: connecting to address  with family 59936 is neither AF_INET(2) nor AF_INET6(10)",
     "source of NCCL, bootstrap.cc; NVIDIA/nccl#1837"},
    {"nccl-connect-failed", root, "onnect to ",
     R"((?:socketStartConnect|socketPollConnect|ncclOs\w+|ncclSocket\w+).*[Cc]onnect to (\S+?)(?:<\d+>)? .*(refused|timed out|No route|connection abort|unreachable))",
     "NCCL could not connect to {1} ({2}): wrong interface, or a firewall between the nodes",
     "set `NCCL_SOCKET_IFNAME` to the interface common to all nodes; open the ports between nodes",
     "stoker hello --nodes 2",
     "NCCL WARN socketStartConnect: Connect to 192.168.9.1<36011> failed : Connection timed out\n"
     "NCCL WARN socketPollConnect: connect to 10.0.0.2<4> returned No route to host",
     "source of NCCL 2.18, socket.cc"},
    {"nccl-versions-differ", root, "Mismatched NCCL version",
     R"(Mismatched NCCL version detected : rank (\d+) version (\d+) rank (\d+) version (\d+))",
     "ranks {1} and {3} have different NCCL versions ({2}, {4})", "use the same environment on all nodes", "",
     "NCCL WARN Mismatched NCCL version detected : rank 0 version 21005 rank 8 version 21903 may cause "
     "undefined behaviour",
     "source of NCCL 2.27, init.cc"},
    {"duplicate-rank", root, "has already checked in", R"(rank (\d+) of (\d+) ranks has already checked in)",
     "two processes have rank {1} of {2}",
     "set `RANK` from the launcher (`SLURM_PROCID`, or torchrun), with as many tasks as ranks",
     "stoker check {started_from}",
     "bootstrap.cc:131 NCCL WARN Bootstrap Root : rank 1 of 8 ranks has already checked in",
     "Lightning-AI/pytorch-lightning#14986"},
    {"nvls-multicast", root, "NVLink SHARP (NVLS)\ntransport/nvls.cc",
     R"(Failed to bind NVLink SHARP|transport/nvls\.cc:\d+ NCCL WARN Cuda failure)",
     "the node's NVSwitch or its Fabric Manager is in a bad state",
     "set `NCCL_NVLS_ENABLE=0`, or use a different node", "nvidia-smi topo -m",
     "NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 1 : CUDA error 1\n"
     "transport/nvls.cc:254 NCCL WARN Cuda failure 1 'invalid argument'",
     "NVIDIA/nccl#976"},
    {"nccl-cuda-oom", root, "Cuda failure", R"(Cuda failure (?:2 )?'out of memory')",
     "GPU out of memory when NCCL allocated its buffers",
     "use a smaller batch; run no other process on that GPU", "nvidia-smi",
     "NCCL WARN Cuda failure 2 'out of memory'\nCuda failure 'out of memory'", "NVIDIA/nccl#962"},
    {"fabric-manager", root, "system not yet initialized", "", "the node's Fabric Manager is not running",
     "leave that node out (`--exclude={node}`) and inform the administrators",
     "systemctl status nvidia-fabricmanager", "NCCL WARN Cuda failure 802 'system not yet initialized'",
     "NVIDIA/nccl-tests#264"},
    {"ecc-error", root, "uncorrectable ECC error", "", "GPU memory is damaged",
     "leave that node out (`--exclude={node}`) and inform the administrators", "nvidia-smi -q -d ECC",
     "RuntimeError: CUDA error: uncorrectable ECC error encountered", "pytorch/pytorch#113128"},
    {"gpu-xid", root, "NVRM: Xid",
     R"(NVRM: Xid \(PCI:([0-9A-Fa-f:.]+)\): (48|62|63|64|74|79|94|95|119|120|140)\b)",
     "GPU {1} has a hardware or driver fault (Xid {2})",
     "leave that node out (`--exclude={node}`) and inform the administrators", "nvidia-smi -q",
     "Nov 21 10:03:11 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=9, GPU has fallen off the bus.",
     "NVIDIA, Xid errors; stas00/ml-engineering"},
    {"gpu-fell-off", root, "fallen off the bus\nGPU is lost", "", "the node has lost a GPU",
     "leave that node out (`--exclude={node}`) and inform the administrators", "nvidia-smi",
     "RuntimeError: Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost. Reboot the "
     "system to recover "
     "this GPU",
     "stas00/ml-engineering"},
    {"nccl-invalid-usage", root, "ncclInvalidUsage", "", "invalid NCCL call, usually two ranks on one GPU",
     "`torch.cuda.set_device(int(os.environ['LOCAL_RANK']))`; `NCCL_DEBUG=WARN` shows details",
     "stoker hello", "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
     "pytorch/pytorch#107174"},
    {"nccl-cuda-error", ending, "unhandled cuda error\nncclUnhandledCudaError", "",
     "a CUDA call failed inside NCCL", "`NCCL_DEBUG=WARN` shows which one; often out of GPU memory",
     "nvidia-smi",
     "torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1691, unhandled cuda error, "
     "NCCL version "
     "2.19.3",
     "vllm-project/vllm#7896"},
    {"nccl-system-error", ending, "unhandled system error\nncclSystemError", "",
     "a system call failed inside NCCL: sockets, shared memory or limits",
     "`NCCL_DEBUG=WARN` shows which one; check `df -h /dev/shm` and `ulimit -n` first", "stoker hello",
     "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
     "stas00/ml-engineering"},
    {"nccl-remote-error", effect, "ncclRemoteError\nremote process exited or there was a network error", "",
     "a peer exited", "", "",
     "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
     "prematurely.",
     "tatsu-lab/stanford_alpaca#207"},
    {"nccl-peer-closed", effect, "Connection closed by remote peer",
     R"(Connection closed by remote peer (\S+))", "{1} closed the connection", "", "",
     "NCCL WARN socketProgress: Connection closed by remote peer n2<51200>", "source of NCCL, socket.cc"},
    {"nccl-proxy-failed", effect,
     "Socket recv failed while polling\nFailed to execute operation\nError encountered progressing operation",
     "", "an NCCL connection or its peer failed", "", "",
     "proxy.cc:1143 NCCL WARN Socket recv failed while polling for opId=0x55a51966cc80\n"
     "proxy.cc:1519 NCCL WARN [Proxy Service 11] Failed to execute operation Connect from rank 11, retcode 2",
     "NVIDIA/nccl#952"},
    {"nccl-aborted", effect, "NCCL communicator was aborted\nncclCommAbort", "",
     "NCCL's communicator was aborted after a failure elsewhere", "", "",
     "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 1.", "pytorch/pytorch#76287"},
    {"gpu-direct-off", slow, "GPU Direct RDMA Disabled",
     R"(GPU Direct RDMA Disabled for (?:GPU \d+ / )?HCA (\S+))",
     "GPU Direct is off: data to adapter {1} passes through host memory",
     "load the kernel module nvidia-peermem on the nodes (administrators)", "",
     "NCCL INFO GPU Direct RDMA Disabled for HCA 0 (distance 8 > 4)", "source of NCCL, paths.cc"},
};

}  // namespace

std::span<const FailureRule> nccl_rules() { return kNcclRules; }

}  // namespace stoker::diagnose
