// Rules for host memory: OOM killer, shared memory, loader workers, process limits.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kMemoryRules[] = {
    {"kernel-oom", root, "Out of memory: Kill\nMemory cgroup out of memory",
     R"((?:Out of memory|Memory cgroup out of memory): Kill(?:ed)? process (\d+) \(([^)]+)\))",
     "the kernel killed {2} (process {1}): out of memory",
     "request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "dmesg -T | grep -i oom",
     "[ 7.1] Memory cgroup out of memory: Killed process 4711 (python) total-vm:9, anon-rss:8kB\n"
     "Nov 21 10:03:11 n1 kernel: Out of memory: Kill process 4711 (python) score 900 or sacrifice child",
     "source of Linux, mm/oom_kill.c"},
    {"loader-worker-bus-error", root, "DataLoader worker\nUnexpected bus error",
     R"(DataLoader worker \(pid[^)]*\) is killed by signal: Bus error|Unexpected bus error encountered in worker)",
     "/dev/shm was full in a loader worker",
     "use a larger /dev/shm (containers: `--shm-size=8g`), fewer workers, or "
     "`torch.multiprocessing.set_sharing_strategy('file_system')`",
     "df -h /dev/shm",
     "RuntimeError: DataLoader worker (pid 2514) is killed by signal: Bus error. It is possible that "
     "dataloader's workers "
     "are out of shared memory.\nERROR: Unexpected bus error encountered in worker. This might be caused by "
     "insufficient shared "
     "memory (shm).",
     "pytorch/pytorch#5040"},
    {"loader-worker-killed", root, "DataLoader worker",
     R"(DataLoader worker \(pid[^)]*\) is killed by signal: Killed)",
     "a loader worker was killed, usually by the kernel (out of memory)",
     "request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "sacct -j JOB -o JobID,State,ReqMem,MaxRSS",
     "RuntimeError: DataLoader worker (pid 2514) is killed by signal: Killed.", "pytorch/pytorch#8976"},
    {"loader-worker-crashed", root, "DataLoader worker",
     R"(DataLoader worker \(pid[^)]*\) is killed by signal: (Segmentation fault|Aborted|Illegal instruction|Terminated|Floating point exception))",
     "a loader worker crashed: {1}", "`num_workers=0` shows the sample and the traceback", "",
     "RuntimeError: DataLoader worker (pid 2514) is killed by signal: Segmentation fault.",
     "pytorch/pytorch#54752"},
    {"loader-worker-gone", ending, "DataLoader worker",
     R"(DataLoader worker \(pid\(?s?\)? [\d, ]+\) exited unexpectedly)",
     "a loader worker exited, usually out of memory; otherwise its exception is above",
     "`num_workers=0` shows why; use fewer workers, or request more memory", "",
     "RuntimeError: DataLoader worker (pid(s) 14700, 14701) exited unexpectedly", "pytorch/pytorch#13246"},
    {"dev-shm-full", root,
     "/dev/shm/\nfailed to extend\nshared memory segment\nunable to write to file </torch\nallocate shared "
     "memory(shm)",
     R"((?:failed to extend|Error while creating shared memory segment|unable to write to file|truncate) ?\S*(?:nccl|torch)\S*.*(?:No space left|\(28\))|unable to write to file </torch_\S+>|allocate shared memory\(shm\) for file)",
     "/dev/shm is full",
     "use a larger /dev/shm (containers: `--shm-size=8g`) or fewer workers; remove files of dead jobs",
     "df -h /dev/shm",
     "NCCL WARN Error: failed to extend /dev/shm/nccl-8aEyuA to 9637892 bytes, error: No space left on "
     "device\n"
     "RuntimeError: unable to write to file </torch_12_345_0>: No space left on device (28)\n"
     "RuntimeError: unable to allocate shared memory(shm) for file </torch_9_3_0>: No space left on device "
     "(28)",
     "NVIDIA/nccl#342"},
    {"shm-fallocate", root, "posix_fallocate failed",
     R"(Call to posix_fallocate failed ?: No space left on device)", "/dev/shm is full",
     "use a larger /dev/shm (containers: `--shm-size=8g`)", "df -h /dev/shm",
     "NCCL WARN Call to posix_fallocate failed : No space left on device", "NVIDIA/nccl#290"},
    {"too-many-open-files", root, "Too many open files", R"(Too many open files(?:: b?'([^']+)')?)",
     "too many open files[[, at {1}]]",
     "close files after use, or `ulimit -n 65536` before the program; with loader workers also "
     "`torch.multiprocessing.set_sharing_strategy('file_system')`",
     "ulimit -n", "OSError: [Errno 24] Too many open files: 'a.jpg'\nsh: 1: Too many open files",
     "source of glibc, errlist"},
    {"too-many-shared-tensors", root, "of ancdata\nunable to open shared memory object", "",
     "too many open files: tensors from workers keep one file each",
     "`ulimit -n 65536` before the program, or `torch.multiprocessing.set_sharing_strategy('file_system')` "
     "in it",
     "ulimit -n",
     "RuntimeError: received 0 items of ancdata\n"
     "RuntimeError: unable to open shared memory object </torch_2_3> in read-write mode",
     "pytorch/pytorch#11201"},
    {"too-many-processes", root,
     "Resource temporarily unavailable\ncan't start new thread\npthread_create failed",
     R"((?:fork|thread|pthread|libgomp|OpenBLAS|clone).*Resource temporarily unavailable|can't start new thread|pthread_create failed)",
     "too many processes and threads",
     "set `OMP_NUM_THREADS=1`, or use fewer workers; `ulimit -u` shows the limit", "ulimit -u",
     "RuntimeError: can't start new thread\nOpenBLAS blas_thread_init: pthread_create failed for thread 3 of "
     "64: Resource "
     "temporarily unavailable\nbash: fork: retry: Resource temporarily unavailable",
     "OpenMathLib/OpenBLAS#1694"},
    {"fork-refused", root, "(below process.start)",
     R"(^(?:BlockingIOError|OSError): \[Errno 11\].* \(below process\.start\)$)",
     "too many processes: the system refused to start one {frame}",
     "set `OMP_NUM_THREADS=1`, or use fewer workers; `ulimit -u` shows the limit", "ulimit -u",
     "BlockingIOError: [Errno 11] Resource temporarily unavailable (below process.start)",
     "source of CPython, _posixsubprocess.c"},
    {"array-too-large", root, "Unable to allocate",
     R"(Unable to allocate (\d{2,}\.?\d* GiB|[\d.]+ [TPE]iB) for an array with shape (\([\d, ]*\)))",
     "the host has no {1} of memory for an array of shape {2} {frame}",
     "compute it in parts, or as a sparse array; if a node has that much memory, request it", "",
     "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 1.05 TiB for an array with shape "
     "(240000, "
     "600000) and data type float64",
     "source of NumPy, _exceptions.py"},
    {"host-memory-error", root, "MemoryError\nCannot allocate memory\nbad_alloc\nDefaultCPUAllocator",
     R"((?:^(?:numpy\._?core\._exceptions\.)?\w*MemoryError\b|Cannot allocate memory|std::bad_alloc|DefaultCPUAllocator: (?:can't|not enough)))",
     "the program could not allocate memory {frame}: the host or the memory limit of the job is full, or "
     "`ulimit -v` limits it",
     "request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "ulimit -v; free -g",
     "MemoryError\nnumpy._core._exceptions._ArrayMemoryError: Unable to allocate 289. GiB for an "
     "array\nOSError: [Errno 12] Cannot allocate memory\nterminate called after throwing an instance "
     "of "
     "'std::bad_alloc'\nRuntimeError: [enforce fail at alloc_cpu.cpp:75] err == 0. DefaultCPUAllocator: "
     "can't allocate "
     "memory: you tried to allocate 9 bytes.",
     "pytorch/pytorch#20618", kScriptEnds, kFitsSeveral},
    {"killed-by-signal-9", ending,
     "exitcode: -9\nexitcode  : -9\nreturn code = -9\nsignal 9 (SIGKILL)\nexit code 137\nSignal 9\nsignal "
     "SIGKILL\non "
     "signal 9\n(signal 9)",
     R"((?:exitcode\s*: -9\b|return code = -9\b|signal 9 \(SIGKILL\)|exit code 137|Signal 9 \(SIGKILL\)|terminated with signal SIGKILL|exited on signal 9 \(Killed\)|EXIT STRING: Killed \(signal 9\)))",
     "the rank was killed with SIGKILL, usually by the kernel (out of memory)",
     "request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "sacct -j JOB -o JobID,State,ReqMem,MaxRSS",
     "torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -9) local_rank: 0 (pid: 13) "
     "of binary: "
     "/bin/python\nrank 1 (n2) exited after 3 s: killed by signal 9 (SIGKILL)\n"
     "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL\n"
     "mpirun noticed that process rank 1 with PID 7 on node n2 exited on signal 9 (Killed).\n"
     "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)",
     "hpcaitech/ColossalAI#3172; resistzzz/Prompt4NR#3; Kay1794/Aware-of-the-history#2"},
    {"bus-error", ending,
     "exitcode: -7\nexitcode  : -7\nreturn code = -7\nexit code 135\nBus error\nsignal 7",
     R"((?:exitcode\s*: -7\b|return code = -7\b|exit code 135|Bus error|signal 7 \(SIGBUS\)))",
     "bus error: /dev/shm is full, or a mapped file was truncated",
     "use a larger /dev/shm (containers: `--shm-size=8g`) if it is full", "df -h /dev/shm",
     "failed (exitcode: -7) local_rank: 1 (pid: 13) of binary: /bin/python", "pytorch/pytorch#54411"},
    // Its lines list SIGSEGV among the usual causes.
    {"ray-actor-constructor", effect, "error raised in its creation task", R"(creation task, (\S+))",
     "the constructor of an actor of Ray failed, {1}; its traceback follows", "", "",
     "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, "
     "ray::Trainer.__init__() (pid=8159)",
     "source of Ray, exceptions.py"},
    {kRayActorDied, ending, "ActorDiedError\nRayActorError",
     R"((?:ActorDiedError|RayActorError)(?:: The actor .*(?:died|dead|unavailable).*)?)",
     "an actor of Ray ended[[: {2}]][[ of class {1}]][[, process {3}]]",
     "read the log of its process (`ray logs`): it exited by itself, crashed or was killed", "ray logs",
     "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
     "source of Ray, exceptions.py"},
    {"ray-worker-died", ending, "A worker died or was killed\nworker process has died", "",
     "a worker process of Ray exited",
     "read its log (`ray logs`): it exited by itself, crashed or was killed", "ray logs",
     "(raylet) A worker died or was killed while executing a task by an unexpected system error. Some common "
     "causes include: the worker crashed unexpectedly due to SIGSEGV\n"
     "The actor is dead because its worker process has died.",
     "source of Ray, node_manager.cc"},
    {"crashed", ending, "exitcode: -\nexitcode  : -\nreturn code = -\nsignal 11\nsignal 6\nSIGSEGV\nSIGABRT",
     R"((?:(?:exitcode\s*:|return code =) -(?:11|6|4|8)\b|[Ss]ignal (?:11|6|4|8) \(([\w ]+)|SIGSEGV|SIGABRT))",
     "the program crashed: {1}", "`python -X faulthandler` shows where; read the lines before", "",
     "failed (exitcode: -11) local_rank: 1 (pid: 13) of binary: /bin/python\n"
     "rank 1 (n2) exited after 3 s: killed by signal 11 (SIGSEGV)\n"
     "[2023-10-13 11:31:28,593] [ERROR] [launch.py:434:sigkill_handler] ['python3'] exits with return code = "
     "-6",
     "deepspeedai/DeepSpeed#4510"},
    // Intel MPI prints the same line for ranks that it killed itself.
    {"mpi-killed", effect, "KILLED BY SIGNAL: 9", "",
     "a rank was killed with SIGKILL: usually by mpiexec after another failure, otherwise out of memory",
     "find the rank that ended differently", "sacct -j JOB -o JobID,State,ReqMem,MaxRSS",
     "=   KILLED BY SIGNAL: 9 (Killed)", "source of Intel MPI"},
};

}  // namespace

std::span<const FailureRule> memory_rules() { return kMemoryRules; }

}  // namespace stoker::diagnose
