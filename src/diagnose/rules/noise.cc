// Harmless lines, and lines that repeat other errors: wrappers of torchrun and Lightning.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kNoiseRules[] = {
    {"advice-on-errors", noise, "If you get `", R"(^If you get `)", "", "", "",
     "If you get `CUDA error: invalid device function` errors, the above might be the cause",
     "source of bitsandbytes, cuda_setup"},
    {"test-not-failed", noise, "XFAIL\nSKIPPED\n... skipped\n... expected failure",
     R"(^(?:XFAIL|SKIPPED)\b|^\S+::\S+ (?:XFAIL|SKIPPED)\b|\.\.\. (?:skipped|expected failure)\b)", "", "",
     "",
     "XFAIL test_a.py::test_c - CUDA error: out of memory\nSKIPPED [1] test_a.py:7: No module named 'apex'",
     "source of pytest, terminal.py"},
    {"ray-no-dashboard-log", noise, "dashboard.log file\ndashboard.err file",
     R"((?:Couldn't|Failed to) read dashboard\.\w+ file)", "", "", "",
     "ERROR services.py:1466 -- Couldn't read dashboard.log file. Error: [Errno 2] No such file or "
     "directory: "
     "'/tmp/ray/session_1/logs/dashboard.log'. It means the dashboard is broken even before it initializes.",
     "source of Ray, services.py"},
    {"torchrun-child-failed", noise, "ChildFailedError", "", "", "", "",
     "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
     "source of PyTorch, errors/__init__.py"},
    {"torchrun-table", noise, "error_file:\nTo enable traceback see\ntraceback : To enable", "", "", "", "",
     "  error_file: <N/A>\n  traceback : To enable traceback see: "
     "https://pytorch.org/docs/stable/elastic/errors.html",
     "source of PyTorch, errors/__init__.py"},
    {"torchrun-closing", noise, "Sending process", R"(Sending process \d+ closing signal)", "", "", "",
     "W1121 10:03:11.250000 7 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 12 "
     "closing signal SIGTERM",
     "source of PyTorch, multiprocessing/api.py"},
    {"torchrun-failed", noise, "failed (exitcode:", R"(failed \(exitcode: [1-9]\d*\) local_rank)", "", "", "",
     "E1121 10:03:11.250000 7 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) "
     "local_rank: 0 (pid: 13) of binary: /v/bin/python",
     "source of PyTorch, multiprocessing/api.py"},
    {"torchrun-terminated", outside, "got signal: 15", R"(SignalException: Process \d+ got signal: 15$)",
     "torchrun was ended with SIGTERM from outside: a time limit, a cancellation, or preemption",
     "request more time if the limit was the reason", "sacct -j JOB -o JobID,State,ExitCode,DerivedExitCode",
     "torch.distributed.elastic.multiprocessing.api.SignalException: Process 26282 got signal: 15",
     "source of PyTorch, multiprocessing/api.py"},
    {"torchrun-signal", effect, "SignalException",
     R"(SignalException(?:: Process \d+ got signal: (?:[2-9]|\d\d+))?$)",
     "torchrun received a signal to stop its ranks", "", "",
     "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 2",
     "source of PyTorch, multiprocessing/api.py"},
    {"spawn-wrapper", noise, "ProcessRaisedException", "", "", "", "",
     "torch.multiprocessing.spawn.ProcessRaisedException: ", "source of PyTorch, spawn.py"},
    {"spawn-exited", noise, "ProcessExitedException",
     R"(ProcessExitedException: process \d+ terminated with exit code [1-9])", "", "", "",
     "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with exit code 1",
     "source of PyTorch, spawn.py"},
    {"loader-wrapper", noise, "in DataLoader worker process", R"(Caught \w+ in DataLoader worker process)",
     "", "", "", "KeyError: Caught KeyError in DataLoader worker process 0.", "source of PyTorch, worker.py"},
    {"replica-wrapper", noise, "in replica", R"(Caught \w+ in replica \d+)", "", "", "",
     "RuntimeError: Caught RuntimeError in replica 0 on device 0.", "source of PyTorch, parallel_apply.py"},
    {"called-process", noise, "CalledProcessError",
     R"(CalledProcessError(?:: Command '(?:\[')?(?:\S*/)?py|: [^C]|$))", "", "", "",
     "subprocess.CalledProcessError: Command '['/v/bin/python', 'train.py']' returned non-zero exit status "
     "1.",
     "source of CPython, subprocess.py"},
    {"system-exit", noise, "SystemExit", R"(^SystemExit\b)", "", "", "", "SystemExit: 1",
     "source of CPython"},
    {"omp-threads", noise, "OMP_NUM_THREADS", R"(Setting OMP_NUM_THREADS environment variable)", "", "", "",
     "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default",
     "source of PyTorch, run.py"},
    {"blocking-wait", noise, "NCCL_ASYNC_ERROR_HANDLING\nNCCL_BLOCKING_WAIT", "", "", "", "",
     "[W Utils.hpp:106] Warning: Environment variable NCCL_ASYNC_ERROR_HANDLING is deprecated; use "
     "TORCH_NCCL_ASYNC_ERROR_HANDLING instead",
     "source of PyTorch, Utils.hpp"},
    {"destroy-not-called", noise,
     "destroy_process_group() was not called\nprocess group has NOT been destroyed", "", "", "", "",
     "[rank0]:[W ProcessGroupNCCL.cpp:1479] Warning: WARNING: destroy_process_group() was not called before "
     "program exit, which can leak resources.",
     "source of PyTorch, ProcessGroupNCCL.cpp"},
    {"nccl-plugin", noise, "libnccl-net.so\nNo plugin found\nlibnccl-tuner.so",
     R"((?:NET/Plugin|TUNER/Plugin|No plugin found|Could not find: libnccl))", "", "", "",
     "NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using internal implementation\nNCCL INFO "
     "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
     "source of NCCL, net.cc"},
    {"libibverbs-missing", noise, "libibverbs", R"(Failed to open libibverbs\.so)", "", "", "",
     "NCCL INFO Failed to open libibverbs.so[.1]", "source of NCCL, ibvwrap.cc"},
    {"recorder-off", noise, "Stack trace of the failed collective not found", "", "", "", "",
     "Stack trace of the failed collective not found, potentially because FlightRecorder is disabled. You "
     "can enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero value.",
     "source of PyTorch, ProcessGroupNCCL.cpp"},
    {"tensorflow-noise", noise, "cuda_dnn.cc\ncuda_fft.cc\ncuda_blas.cc\nTF-TRT Warning",
     R"((?:Unable to register cu\w+ factory|TF-TRT Warning))", "", "", "",
     "E0000 00:00:1 7 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to register factory for "
     "plugin cuDNN when one has already been registered",
     "tensorflow/tensorflow#62075"},
    {"allocator-advice", noise, "this is not a failure", "", "", "", "",
     "W external/local_xla/xla/tsl/framework/bfc_allocator.cc:306] Allocator (GPU_0_bfc) ran out of memory "
     "trying "
     "to allocate 2.59GiB with freed_by_count=0. The caller indicates that this is not a failure, but this "
     "may "
     "mean that there could be performance gains if more memory were available.",
     "source of TensorFlow, bfc_allocator.cc"},
    {"errno-97", noise, "errno: 97", R"(\(errno: 97 - Address family not supported)", "", "", "",
     "[W socket.cpp:663] [c10d] The client socket has failed to connect to [n1]:29500 (errno: 97 - Address "
     "family not supported by protocol).",
     "source of PyTorch, socket.cpp"},
    {kTaskExitCode, noise, "xited with exit code",
     R"(srun: error: .*Exited with exit code|^(?:[\w.@/-]+: ){0,2}(?:task|rank)s? [\d,-]+: [Ee]xited with exit code [1-9])",
     "", "", "",
     "srun: error: n1: task 0: Exited with exit code 1\nlauncher: task 0: exited with exit code 1",
     "source of slurm, srun/launch.c"},
    {"srun-terminating", noise,
     "Job step aborted\nTerminating StepId\nTerminating job step\nForce Terminated", "", "", "", "",
     "srun: Terminating StepId=7.0\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
     "source of slurm, srun/launch.c"},
    {"leaked-semaphores", noise, "leaked semaphore objects\nleaked shared_memory", "", "", "", "",
     "resource_tracker: There appear to be 12 leaked semaphore objects to clean up at shutdown",
     "source of CPython, resource_tracker.py"},
    {"ignored-exception", noise, "Exception ignored in", "", "", "", "",
     "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>", "source of CPython"},
    {"torch-compile-cpp", noise, "Exception raised from", R"(Exception raised from \w+ at )", "", "", "",
     "Exception raised from recvBytes at ../torch/csrc/distributed/c10d/Utils.hpp:672 (most recent call "
     "first):",
     "source of PyTorch, Exception.cpp"},
};

}  // namespace

std::span<const FailureRule> noise_rules() { return kNoiseRules; }

}  // namespace stoker::diagnose
