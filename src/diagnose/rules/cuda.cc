// Rules for CUDA, its driver and the devices.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kCudaRules[] = {
    {"gpu-memory-shared", root, "out of memory. Tried",
     R"((?:CUDA|HIP) out of memory\. Tried .*?(?:Process (\d+) has ([\d.]+ GiB) memory in use\..*\bthis process has |\bthis process has [\d.]+ \wi?B memory in use\..*?Process (\d+) has ([\d.]+ GiB) memory in use))",
     "the GPU is out of memory, and process {1}{3} uses {2}{4} of it",
     "use one process per GPU: `ps -fp {1}{3}` on that node shows the other one", "nvidia-smi",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
     "79.15 GiB of "
     "which 1.20 GiB is free. Process 1234 has 70.00 GiB memory in use. Including non-PyTorch "
     "memory, this process has 7.95 GiB memory in use.\n"
     "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 3 has a total "
     "capacty "
     "of 39.59 GiB of "
     "which 12.19 MiB is free. Including non-PyTorch memory, this process has 2.92 GiB "
     "memory "
     "in use. Process 77 has 36.60 GiB memory in use.",
     "source of PyTorch, CUDACachingAllocator.cpp"},
    // Less than 1 GiB is requested, and more than that is reserved.
    {"gpu-memory-fragmented", root, "but unallocated",
     R"((?:CUDA|HIP|XPU) out of memory\. Tried to allocate ([\d.]+ [KM]iB)\. GPU (\d+) has .* and ([\d.]+ GiB) is reserved by PyTorch but unallocated)",
     "GPU {2} is out of memory: its free memory is fragmented: {1} more requested, {3} reserved but "
     "unallocated",
     "`PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` in the environment of the program", "nvidia-smi",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity "
     "of "
     "79.15 GiB of "
     "which 300.12 MiB is free. Including non-PyTorch memory, this process has 78.83 GiB memory "
     "in "
     "use. Of the allocated memory 60.11 GiB is allocated by PyTorch, and 18.03 GiB is reserved by PyTorch "
     "but "
     "unallocated.",
     "source of PyTorch, CUDACachingAllocator.cpp"},
    {"gpu-out-of-memory", root,
     "CUDA out of memory\nHIP out of memory\nXPU out of memory\nCUDA error: out of memory\nCUDA driver "
     "error: "
     "out of memory\nOutOfMemoryError",
     R"((?:CUDA|HIP|XPU) out of memory\. Tried to allocate ([\d.]+ (?:\wi?B|bytes))(?:\.? \(?GPU (\d+)(?:; | has a total capac\w* of )([\d.]+ \wi?B)(?:(?: total capacity; [\d.]+ \wi?B already allocated;| of (?:which)) ([\d.]+ (?:\wi?B|bytes)) (?:is )?free)?)?|CUDA (?:driver )?error: out of memory|(?:CUDA|HIP|XPU) out of memory|OutOfMemoryError: Allocation on device)",
     "GPU[[ {2}]] is out of memory[[: {1} more requested]][[, {4} of {3} free]]",
     "halve the batch and add up the gradients of two batches for each optimizer step, with `loss / 2`: the "
     "result is the same; or use bf16 or activation checkpointing",
     "nvidia-smi",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
     "79.15 GiB of "
     "which 1.20 GiB is free.\nRuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB "
     "(GPU 0; "
     "15.78 GiB total capacity; 14.2 GiB already allocated; 12.19 MiB free; 14.50 GiB reserved in total by "
     "PyTorch)\nRuntimeError: CUDA error: out of memory\n"
     "torch.AcceleratorError: CUDA error: out of memory\nRuntimeError: CUDA driver error: out of memory\n"
     "torch.cuda.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)",
     "pytorch/pytorch#16417"},
    {"index-out-of-range-on-gpu", root, "Assertion `", R"(Assertion `(.*?)` failed)",
     "an index or a label is out of range on the GPU: {1}",
     "check labels against the number of classes; `CUDA_LAUNCH_BLOCKING=1` shows the call", "",
     "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], "
     "thread: [7,0,0] "
     "Assertion `t >= 0 && t < n_classes` failed.",
     "pytorch/pytorch#43121"},
    {"device-assert", general, "device-side assert triggered", "",
     "an index or a label is out of range on the GPU",
     "check labels against the number of classes; `CUDA_LAUNCH_BLOCKING=1` shows the call", "",
     "RuntimeError: CUDA error: device-side assert triggered", "pytorch/pytorch#43121"},
    {"illegal-memory-access", root, "illegal memory access", "", "a kernel accessed an invalid address",
     "`CUDA_LAUNCH_BLOCKING=1` shows the call; `compute-sanitizer python` checks the kernel", "",
     "RuntimeError: CUDA error: an illegal memory access was encountered", "pytorch/pytorch#21819"},
    {"gpu-busy", root, "busy or unavailable", "", "the GPU is in use by another process",
     "use one rank per GPU; `nvidia-smi` lists the processes", "nvidia-smi",
     "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable\nRuntimeError: CUDA-capable "
     "device(s) is/are busy "
     "or unavailable",
     "NVIDIA/nvidia-resiliency-ext#18"},
    {"no-such-gpu", root, "invalid device ordinal", "",
     "a rank uses a GPU that is not visible: more ranks than GPUs on the node, or only one GPU visible per "
     "rank",
     "use device `int(os.environ['LOCAL_RANK']) % torch.cuda.device_count()`, and request as many tasks per "
     "node as GPUs",
     "stoker check {started_from}", "RuntimeError: CUDA error: invalid device ordinal",
     "pytorch/pytorch#42486"},
    {"no-gpu", root,
     "No CUDA GPUs are available\nno CUDA-capable device\nFound no NVIDIA driver\nonly supported with "
     "GPUs\nTorch not compiled with CUDA",
     R"((No CUDA GPUs are available|no CUDA-capable device is detected|Found no NVIDIA driver|ProcessGroupNCCL is only supported with GPUs|Torch not compiled with CUDA enabled))",
     "no GPU available: {1}",
     "request a GPU (`#SBATCH --gres=gpu:1`) on a node with GPUs, and install a torch built for CUDA",
     "nvidia-smi",
     "RuntimeError: No CUDA GPUs are available\nAssertionError: Torch not compiled with CUDA "
     "enabled\nRuntimeError: ProcessGroupNCCL is "
     "only supported with GPUs, no GPUs found!",
     "pytorch/pytorch#15612"},
    {"driver-too-old", root,
     "driver version is insufficient\nNVIDIA driver on your system is too old\nCUDA driver version",
     R"((?:CUDA [Dd]river version is insufficient|NVIDIA driver on your system is too old(?: \(found version (\d+)\))?))",
     "the node's driver[[ (CUDA version {1})]] is too old for this program",
     "install a torch built for an older CUDA, or update the driver", "nvidia-smi",
     "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\nRuntimeError: CUDA "
     "error: CUDA driver version is "
     "insufficient for CUDA runtime version",
     "pytorch/pytorch#25936"},
    {"no-kernel-for-gpu", root, "no kernel image is available", "",
     "this torch was not built for this type of GPU",
     "install a torch built for its compute capability (`torch.cuda.get_arch_list()`)", "",
     "RuntimeError: CUDA error: no kernel image is available for execution on the device",
     "pytorch/pytorch#31285"},
    {"cublas-failed", root, "CUBLAS_STATUS",
     R"((CUBLAS_STATUS_(?:ALLOC_FAILED|NOT_INITIALIZED|EXECUTION_FAILED|INTERNAL_ERROR)))",
     "cuBLAS failed ({1}): usually out of GPU memory, or an earlier index out of range",
     "use a smaller batch; `CUDA_LAUNCH_BLOCKING=1` shows the call", "",
     "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
     "pytorch/pytorch#52228"},
    {"cudnn-failed", root, "CUDNN_STATUS\nUnable to find a valid cuDNN",
     R"((CUDNN_STATUS_\w+|Unable to find a valid cuDNN algorithm))",
     "cuDNN failed ({1}): usually out of GPU memory, or a different cuDNN is loaded",
     "use a smaller batch; remove other cuDNN versions from `LD_LIBRARY_PATH`", "",
     "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "pytorch/pytorch#16831"},
    {"nccl-symbol-missing", root, "undefined symbol: nccl", R"(undefined symbol: (nccl\w+))",
     "a different libnccl than torch's is loaded ({1})",
     "remove it from `LD_LIBRARY_PATH`; `pip list | grep nccl` shows torch's version", "",
     "ImportError: /v/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister",
     "pytorch/pytorch#119932"},
    {"fork-and-cuda", root, "Cannot re-initialize CUDA in forked", "",
     "a worker was forked after CUDA was initialized",
     "`multiprocessing_context='spawn'`, and no GPU tensors in the dataset", "",
     "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you "
     "must use the 'spawn' start "
     "method",
     "pytorch/pytorch#40403"},
    {"devices-mixed", root, "to be on the same device", R"(found at least two devices, (\S+) and ([^ !,]+))",
     "tensors on {1} and {2} are used in one operation", "use `model.to(device)` and `inputs.to(device)`", "",
     "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, cuda:0 "
     "and cpu!",
     "pytorch/pytorch#90613"},
    {"launch-failure", root, "unspecified launch failure\nCUDA error: misaligned\nlaunch timed out",
     R"((unspecified launch failure|misaligned address|launch timed out))",
     "a kernel crashed on the GPU: {1}",
     "`CUDA_LAUNCH_BLOCKING=1` shows the call; use a different node if only this one fails", "",
     "RuntimeError: CUDA error: unspecified launch failure", "pytorch/pytorch#27837"},
    {"cuda-error", general, "CUDA error:\nHIP error:", R"((?:CUDA|HIP) error: (.*))", "CUDA failed: {1}",
     "`CUDA_LAUNCH_BLOCKING=1` shows the call", "", "RuntimeError: CUDA error: an unusual one",
     "source of PyTorch, CUDAException.cpp"},
    {"gpu-not-bound", slow, "are currently unknown\nis currently unknown",
     R"(using (?:best-guess )?GPU (\d+) .* currently unknown)",
     "the process group does not know the GPU of a rank: a barrier may use the wrong one",
     "`init_process_group(device_id=torch.device('cuda', local_rank))`", "",
     "[rank1]:[W ProcessGroupNCCL.cpp:4843] [PG ID 0 PG GUID 0 Rank 1]  using GPU 1 as device used by this "
     "process is currently unknown.",
     "pytorch/pytorch#131478"},
};

}  // namespace

std::span<const FailureRule> cuda_rules() { return kCudaRules; }

}  // namespace stoker::diagnose
