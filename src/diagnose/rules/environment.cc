// Rules for libraries, containers, launchers and clocks.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kEnvironmentRules[] = {
    {"backend-not-built", root, "Distributed package doesn't have",
     R"(Distributed package doesn't have (\w+) built in)", "this build of torch has no {1}",
     "install a build of torch for CUDA, or use `backend='gloo'` on CPUs",
     "python -c 'import torch; print(torch.__version__, torch.version.cuda)'",
     "RuntimeError: Distributed package doesn't have NCCL built in",
     "source of PyTorch, distributed_c10d.py"},
    {"torch-extension-version", root, "does not exist",
     R"(operator (torchvision|torchaudio|torchtext)::\w+ does not exist)",
     "{1} was built for a different version of torch", "`pip install --upgrade torch {1}`",
     "pip show torch {1}", "RuntimeError: operator torchvision::nms does not exist",
     "source of PyTorch, library.py"},
    {"hydra-config-missing", root, "Could not find '", R"(^In '([^']*)': Could not find '([^']*)')",
     "Hydra's config {1} names {2}, which does not exist",
     "use an existing name; `--info searchpath` shows the folders with configs", "",
     "In 'config': Could not find 'model/vit_large'", "source of Hydra, config_loader_impl.py"},
    {"hydra-override", root, "Could not override '", R"(Could not override '([^']*)')",
     "Hydra cannot override {1}, which is not in the config", "`+{1}=VALUE` adds it", "",
     "Could not override 'trainer.warmup'.", "source of Hydra, config_loader_impl.py"},
    {"ray-memory-monitor", root, "killed due to the node running low on memory",
     R"(killed due to the node running low on memory(?:.*Memory on the node \(IP: ([\w.:]+))?)",
     "Ray killed a worker, because the node[[ {1}]] was low on memory",
     "request more memory (for example `#SBATCH --mem=64G`), or use fewer loader workers or a smaller batch",
     "ray logs raylet.out",
     "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
     "ray.exceptions.OutOfMemoryError: 1 worker(s) were killed due to the node running low on memory. Memory "
     "on the node (IP: 10.0.0.2, ID: 1d42) was 3.30GB used / 23.54GB limit (0.140205)",
     "source of Ray, node_manager.cc"},
    {"ray-infeasible", root, "can fulfill resource request",
     R"re(No available node types can fulfill resource request (\{[^}]*\}))re",
     "no node of the Ray cluster has the resources that a task requests: {1}",
     "request less in `num_gpus` of `ray.remote`, or start nodes that have them", "ray status",
     "(autoscaler +18s) Error: No available node types can fulfill resource request {'CPU': 1.0, 'GPU': "
     "1.0}. "
     "Add suitable node types to this cluster to resolve this issue.",
     "source of Ray, autoscaler.py"},
    {"ray-task-error", effect, "RayTaskError(", R"(RayTaskError\((\w+)\): .*?ray::([\w.]+))",
     "task {2} of Ray raised {1}; its traceback follows", "", "",
     "ray.exceptions.RayTaskError(KeyError): ray::evaluate() (pid=6952, ip=10.0.0.2)",
     "source of Ray, exceptions.py"},
    {"ray-head-missing", root, "Failed to connect to GCS",
     R"(Failed to connect to GCS(?: at address ([\w.:\[\]-]+))? within)",
     "Ray's head[[ at {1}]] does not answer",
     "start `ray start --head` first, and wait until its port answers", "ray status",
     "Failed to connect to GCS at address 10.0.0.2:6399 within 5 seconds.\nFailed to connect to GCS within "
     "10 seconds.",
     "source of Ray, rpc_client.h"},
    {"glibc-too-old", root, "GLIBC", R"(version .(GLIBC(?:XX)?_[\d.]+|CXXABI_[\d.]+)'? not found)",
     "a library was built for a newer system: {1} is missing here",
     "use a release for this system, a container, or a module with a newer gcc", "ldd --version",
     "ImportError: /lib64/libm.so.6: version `GLIBC_2.29' not found (required by /v/a.so)\nImportError: "
     "/lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found",
     "pytorch/pytorch#38765"},
    {"extension-not-built", root, "torch_extensions",
     R"((\S*/torch_extensions/\S+\.so): cannot open shared object file)",
     "the extension {1} was never built: an earlier build was interrupted, or it still runs",
     "delete its folder, and let one process build it first: `rm -r \"$(dirname {1})\"`", "",
     "ImportError: /users/ada/.cache/torch_extensions/py311_cu124/fused_adam/fused_adam.so: cannot open "
     "shared "
     "object file: No such file or directory",
     "source of PyTorch, cpp_extension.py"},
    {"library-missing", root, "cannot open shared object file", R"((\S+?): cannot open shared object file)",
     "library {1} was not found on that node", "load the module that provides it, or set `LD_LIBRARY_PATH`",
     "ldconfig -p | grep {1}",
     "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\n"
     "a.out: error while loading shared libraries: libmpi.so.40: cannot open shared object file: No such "
     "file or directory",
     "pytorch/pytorch#77939"},
    {"symbol-missing", root, "undefined symbol", R"((\S+): undefined symbol: (\S+))",
     "{1} was built for a different version of its dependency ({2} is missing)",
     "rebuild it with this torch and CUDA, or install a matching wheel", "",
     "ImportError: /v/flash_attn_2_cuda.so: undefined symbol: _ZNK3c105Error4whatEv",
     "Dao-AILab/flash-attention#451"},
    {"illegal-instruction", root, "Illegal instruction", R"(Illegal instruction)",
     "the program was built for a newer processor than that of the node",
     "build it on the oldest node type, or request the newer nodes with `--constraint`", "lscpu",
     "job.sh: line 4: 99 Illegal instruction     (core dumped) python train.py",
     "tensorflow/tensorflow#17411"},
    {"mpi-no-slots", root, "not enough slots", "", "mpirun requests more ranks than available slots",
     "request as many tasks as ranks (`--ntasks`), or use `srun` instead of mpirun", "",
     "There are not enough slots available in the system to satisfy the 8", "open-mpi/ompi#6497"},
    {"mpi-without-slurm", root, "not built with SLURM's PMI\nPMI2_Init failed\nOPAL ERROR: Unreachable", "",
     "srun and this MPI have no common PMI",
     "use `srun --mpi=pmix` (`srun --mpi=list` shows the kinds), or mpirun", "srun --mpi=list",
     "The application appears to have been direct launched using \"srun\", but OMPI was not built with "
     "SLURM's PMI support",
     "open-mpi/ompi#7559"},
    {"ucx-error", ending, "UCX  ERROR\nUCX  FATAL", R"(UCX  (?:ERROR|FATAL) (.*))",
     "UCX, the transport of MPI, failed: {1}",
     "exclude the failed transport with `UCX_TLS`; `UCX_LOG_LEVEL=info` shows details", "ucx_info -d",
     "[1580.34] [n1:43722:2] ucp_rkey.c:266  UCX  ERROR failed to unpack remote key from remote md[5]: "
     "Input/output error",
     "pytorch/pytorch#31528"},
    {"container-missing", root, "FATAL:", R"(FATAL: +(.*))", "the container cannot start: {1}",
     "check its path on the nodes; `apptainer inspect FILE` reads it", "",
     "FATAL:   could not open image /users/a.sif: failed to retrieve path for /users/a.sif: lstat "
     "/users/a.sif: "
     "no such file or directory",
     "apptainer/apptainer#1"},
    {"container-gpus", root, "could not select device driver\nnvidia-container-cli",
     R"((could not select device driver.*|nvidia-container-cli: .*))", "the container has no GPU: {1}",
     "use `--nv` with Apptainer or `--gpus all` with Docker, on a node with GPUs", "nvidia-smi",
     "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].",
     "NVIDIA/nvidia-docker#1034"},
    {"clock-off", root,
     "clock skew\nClock skew\nRequestTimeTooSkewed\nexpired credential\nRewound credential\nMunge decode "
     "failed\ncertificate is not yet valid",
     R"(([Cc]lock skew detected|RequestTimeTooSkewed|Munge decode failed: \w+ credential|certificate is not yet valid))",
     "the node's clock is wrong: {1}",
     "leave that node out (`--exclude={node}`) and inform the administrators", "date; chronyc tracking",
     "slurmstepd: error: Munge decode failed: Expired credential\nmake: warning:  Clock skew detected.  Your "
     "build may be incomplete.",
     "dun/munge#94"},
    {"torchrun-arguments", root, "torchrun: error", R"(torchrun: error: (.*))",
     "torchrun rejects its arguments: {1}", "`torchrun --help` lists the valid ones", "",
     "torchrun: error: the following arguments are required: training_script, training_script_args",
     "source of PyTorch, run.py"},
    {"nproc-not-gpus", root, "Not enough GPUs", "", "more processes on a node than GPUs",
     "set `--nproc-per-node` to the number of GPUs of a node", "nvidia-smi -L",
     "RuntimeError: Not enough GPUs available", "source of torchrun"},
    {"lightning-devices", root, "MisconfigurationException",
     R"(MisconfigurationException: (.*(?:[Yy]our machine only has|backend found|[Nn]o .*device|num_nodes|`?devices`?[ =(]).*))",
     "Lightning rejects its settings: {1}",
     "set `devices` to the number of tasks per node and `num_nodes` to the number of nodes", "",
     "lightning_fabric.utilities.exceptions.MisconfigurationException: You requested gpu: [0, 1] But your "
     "machine only has: [0]",
     "Lightning-AI/pytorch-lightning#8993"},
    {"lightning-settings", root, "MisconfigurationException", R"(MisconfigurationException: (.*))",
     "Lightning rejects its settings: {1}", "", "",
     "lightning.fabric.utilities.exceptions.MisconfigurationException: No `training_step()` method defined.",
     "source of Lightning, configuration_validator.py"},
    {"lightning-tasks", root, "does not match", R"((?:You set `|--ntasks).*ntasks.*does not match)",
     "Slurm's task count differs from Lightning's devices",
     "request as many tasks per node (`--ntasks-per-node`) as `devices`", "",
     "ValueError: You set `devices=4` in Lightning, but the number of tasks per node configured in SLURM "
     "`--ntasks-per-node=1` does not match.",
     "Lightning-AI/pytorch-lightning#18650"},
    {"deepspeed-pdsh", root, "launcher 'pdsh' not installed", "", "DeepSpeed's launcher needs pdsh",
     "use `deepspeed --launcher slurm`, or one torchrun per node", "",
     "RuntimeError: launcher 'pdsh' not installed.", "microsoft/DeepSpeed#1107"},
    {"compiler-missing", root,
     "Ninja is required\nCUDA_HOME environment variable is not set\nnvcc: not found\nC compiler",
     R"((Ninja is required|CUDA_HOME environment variable is not set|[Ff]ailed to find C compiler))",
     "building an extension on the node failed: {1}",
     "build it earlier on a login node, with `module load cuda gcc`", "",
     "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install "
     "root.",
     "microsoft/DeepSpeed#694"},
    {"triton-cache", root, "triton",
     R"((?:(?:No such file or directory|Permission denied|Stale file handle).*\.triton/|\.triton/.*(?:No such file|Permission denied|Stale)))",
     "Triton's cache is on a shared file system that ranks of several nodes write",
     "set `TRITON_CACHE_DIR` to a node-local folder", "",
     "FileNotFoundError: [Errno 2] No such file or directory: '/users/ada/.triton/cache/a/b.json'",
     "triton-lang/triton#2688"},
    {"ssh-refused", root, "Host key verification failed\nPermission denied (publickey", "",
     "ssh between nodes is refused", "use `srun` instead of ssh", "stoker check {started_from}",
     "Host key verification failed.\nada@n2: Permission denied (publickey,password).",
     "microsoft/DeepSpeed#2142"},
};

}  // namespace

std::span<const FailureRule> environment_rules() { return kEnvironmentRules; }

}  // namespace stoker::diagnose
