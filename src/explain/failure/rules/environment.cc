// Rules over libraries, containers, launchers and clocks.
#include "explain/failure/rule.h"

namespace stoker::explain {
namespace {

using enum Weight;

constexpr FailureRule kEnvironmentRules[] = {
    {"glibc-too-old", root, "GLIBC", R"(version .(GLIBC(?:XX)?_[\d.]+|CXXABI_[\d.]+)'? not found)",
     "a library was built for a newer system: {1} is not here",
     "a release for this system, a container, or a module with a newer gcc", "ldd --version",
     "ImportError: /lib64/libm.so.6: version `GLIBC_2.29' not found (required by /v/a.so)\nImportError: "
     "/lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found",
     "pytorch/pytorch#38765"},
    {"library-missing", root, "cannot open shared object file", R"((\S+?): cannot open shared object file)",
     "library {1} is not found on that node", "module load what has it, in the job script; LD_LIBRARY_PATH",
     "ldd",
     "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\n"
     "a.out: error while loading shared libraries: libmpi.so.40: cannot open shared object file: No such "
     "file or directory",
     "pytorch/pytorch#77939"},
    {"symbol-missing", root, "undefined symbol", R"((\S+): undefined symbol: (\S+))",
     "{1} was built against another release of what it uses ({2} is missing)",
     "build it again with this torch and CUDA, or a matching wheel", "",
     "ImportError: /v/flash_attn_2_cuda.so: undefined symbol: _ZNK3c105Error4whatEv",
     "Dao-AILab/flash-attention#451"},
    {"illegal-instruction", root, "Illegal instruction", R"(Illegal instruction)",
     "the program was built for a newer processor than that node's",
     "build on the oldest kind of node, or #SBATCH --constraint=...", "lscpu",
     "job.sh: line 4: 99 Illegal instruction     (core dumped) python train.py",
     "tensorflow/tensorflow#17411"},
    {"mpi-no-slots", root, "not enough slots", "", "mpirun wants more ranks than it sees slots",
     "as many tasks as ranks: --ntasks; or srun in place of mpirun", "",
     "There are not enough slots available in the system to satisfy the 8", "open-mpi/ompi#6497"},
    {"mpi-without-slurm", root, "not built with SLURM's PMI\nPMI2_Init failed\nOPAL ERROR: Unreachable", "",
     "srun and this MPI do not know each other's way to start",
     "srun --mpi=pmix (srun --mpi=list), or mpirun", "srun --mpi=list",
     "The application appears to have been direct launched using \"srun\", but OMPI was not built with "
     "SLURM's PMI support",
     "open-mpi/ompi#7559"},
    {"ucx-error", ending, "UCX  ERROR\nUCX  FATAL", R"(UCX  (?:ERROR|FATAL) (.*))",
     "UCX, which carries MPI's messages, failed: {1}",
     "UCX_TLS without what failed; UCX_LOG_LEVEL=info tells more", "ucx_info -d",
     "[1580.34] [n1:43722:2] ucp_rkey.c:266  UCX  ERROR failed to unpack remote key from remote md[5]: "
     "Input/output error",
     "pytorch/pytorch#31528"},
    {"container-missing", root, "FATAL:", R"(FATAL: +(.*))", "the container cannot start: {1}",
     "its path on the nodes; apptainer inspect FILE", "",
     "FATAL:   could not open image /users/a.sif: failed to retrieve path for /users/a.sif: lstat "
     "/users/a.sif: "
     "no such file or directory",
     "apptainer/apptainer#1"},
    {"container-gpus", root, "could not select device driver\nnvidia-container-cli",
     R"((could not select device driver.*|nvidia-container-cli: .*))", "the container gets no GPU: {1}",
     "--nv with Apptainer, --gpus all with Docker; a node with GPUs", "nvidia-smi",
     "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].",
     "NVIDIA/nvidia-docker#1034"},
    {"clock-off", root,
     "clock skew\nClock skew\nRequestTimeTooSkewed\nexpired credential\nRewound credential\nMunge decode "
     "failed\ncertificate is not yet valid",
     R"(([Cc]lock skew detected|RequestTimeTooSkewed|Munge decode failed: \w+ credential|certificate is not yet valid))",
     "the node's clock is wrong: {1}", "another node: --exclude=NODE, and a word to the administrators",
     "date; chronyc tracking",
     "slurmstepd: error: Munge decode failed: Expired credential\nmake: warning:  Clock skew detected.  Your "
     "build may be incomplete.",
     "dun/munge#94"},
    {"torchrun-arguments", root, "torchrun: error", R"(torchrun: error: (.*))",
     "torchrun does not take its arguments: {1}", "torchrun --help", "",
     "torchrun: error: the following arguments are required: training_script, training_script_args",
     "source of PyTorch, run.py"},
    {"nproc-not-gpus", root, "Not enough GPUs", "", "more processes on a node than GPUs",
     "--nproc-per-node as many as --gpus-per-node", "nvidia-smi -L",
     "RuntimeError: Not enough GPUs available", "source of torchrun"},
    {"lightning-devices", root, "MisconfigurationException\nbut your machine only has",
     R"(MisconfigurationException: (.*))", "Lightning refuses its settings: {1}",
     "devices= as many as tasks on a node, num_nodes= as --nodes", "",
     "lightning_fabric.utilities.exceptions.MisconfigurationException: You requested gpu: [0, 1] But your "
     "machine only has: [0]",
     "Lightning-AI/pytorch-lightning#8993"},
    {"lightning-tasks", root, "does not match", R"((?:You set `|--ntasks).*ntasks.*does not match)",
     "Slurm's tasks are not as many as Lightning's devices", "#SBATCH --ntasks-per-node as devices=", "",
     "ValueError: You set `devices=4` in Lightning, but the number of tasks per node configured in SLURM "
     "`--ntasks-per-node=1` does not match.",
     "Lightning-AI/pytorch-lightning#18650"},
    {"deepspeed-pdsh", root, "launcher 'pdsh' not installed", "", "DeepSpeed's launcher wants pdsh",
     "srun with --launcher slurm, or one torchrun for each node", "",
     "RuntimeError: launcher 'pdsh' not installed.", "microsoft/DeepSpeed#1107"},
    {"compiler-missing", root,
     "Ninja is required\nCUDA_HOME environment variable is not set\nnvcc: not found\nC compiler\nError "
     "building extension",
     R"((Ninja is required|CUDA_HOME environment variable is not set|Error building extension '\w+'|[Ff]ailed to find C compiler))",
     "an extension is to be built on the node, and cannot: {1}",
     "build it before, on a login node; module load cuda gcc", "",
     "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install "
     "root.\nRuntimeError: Error building extension 'fused_adam'",
     "microsoft/DeepSpeed#694"},
    {"triton-cache", root, "triton",
     R"((?:(?:No such file or directory|Permission denied|Stale file handle).*\.triton/|\.triton/.*(?:No such file|Permission denied|Stale)))",
     "Triton's cache is on a file system that ranks of other nodes change too",
     "TRITON_CACHE_DIR on the node's own disk", "",
     "FileNotFoundError: [Errno 2] No such file or directory: '/users/ada/.triton/cache/a/b.json'",
     "triton-lang/triton#2688"},
    {"ssh-refused", root, "Host key verification failed\nPermission denied (publickey", "",
     "ssh between nodes is refused", "srun in place of ssh", "stoker check SCRIPT",
     "Host key verification failed.\nada@n2: Permission denied (publickey,password).",
     "microsoft/DeepSpeed#2142"},
};

}  // namespace

std::span<const FailureRule> environment_rules() { return kEnvironmentRules; }

}  // namespace stoker::explain
