// Rules for JAX, XLA and TensorFlow.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kJaxRules[] = {
    {"tensorflow-host-memory", root, "OOM when allocating",
     R"(OOM when allocating tensor with shape ?(\[[\d,]*\]).*(?:device:CPU|allocator (?:cpu|mklcpu)))",
     "the host is out of memory, for a tensor of shape {1}",
     "compute it in parts, or as a sparse array; if a node has that much memory, request it", "",
     "ResourceExhaustedError: OOM when allocating tensor with shape[64,2016,9,9] and type float on "
     "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu",
     "source of TensorFlow, op_kernel.cc"},
    {"jax-host-memory", root, "Error dispatching computation",
     R"(Error dispatching computation: .*Out of memory allocating (\d+ bytes))",
     "the host is out of memory: {1} more requested",
     "compute it in parts, or as a sparse array; if a node has that much memory, request it", "",
     "jax.errors.JaxRuntimeError: INTERNAL: Error dispatching computation: Out of memory allocating "
     "144000000000000 bytes.",
     "source of XLA, cpu_client.cc"},
    {"jax-out-of-memory", root, "Out of memory allocating",
     R"(Out of memory allocating ([\d.]+ ?(?:bytes|[KMGT]i?B)))",
     "JAX is out of memory {frame}, of the GPU or, if it runs on CPUs, of the node: {1} more requested",
     "compute in parts (`jax.lax.map` over chunks, a smaller batch), or use rematerialization "
     "(`jax.checkpoint`)",
     "python -c 'import jax; print(jax.devices())'",
     "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 20029400304 bytes.",
     "source of XLA, cpu_client.cc"},
    {"device-out-of-memory", root, "Out of memory while trying to allocate\nOOM when allocating",
     R"(Out of memory while trying to allocate ([\d.]+ ?(?:bytes|[KMGT]i?B))|OOM when allocating tensor with shape ?(\[[\d,]*\]))",
     "the device is out of memory[[: {1} more requested]][[, for a tensor of shape {2}]]",
     "use a smaller batch or rematerialization (`jax.checkpoint`), and run no other process on that GPU",
     "nvidia-smi",
     "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
     "7406166528 bytes.\n"
     "ResourceExhaustedError: OOM when allocating tensor with shape[64,2016,9,9] and type float on "
     "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
     "google-deepmind/alphafold#1023; tensorflow/models#5527"},
    // TensorFlow requests less and less memory at its start, and may succeed.
    {"device-memory-taken", ending, "CUDA_ERROR_OUT_OF_MEMORY",
     R"(failed to allocate ([\d.]+ ?[KMGT]i?B?) .*CUDA_ERROR_OUT_OF_MEMORY)",
     "the GPU had no {1} of free memory: another process may use it",
     "run no other process on that GPU; `XLA_PYTHON_CLIENT_PREALLOCATE=false` reserves less in advance",
     "nvidia-smi",
     "E external/xla/xla/stream_executor/cuda/cuda_driver.cc:1098] failed to allocate 2.20GiB (2362232064 "
     "bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
     "source of XLA, cuda_driver.cc"},
    {"jax-barrier-timeout", hang, "Barrier timed out",
     R"(Barrier timed out\. (?:Barrier_id|Id): ?([\w\[\]-]+(?:::\d+)?))",
     "some tasks did not reach the barrier {1} in time",
     "read the logs of the missing tasks: `num_processes` must be the number of started tasks", "",
     "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: "
     "PjRT_Client_Connect. Timed out task names:\n"
     "Original error: DEADLINE_EXCEEDED: Barrier timed out. Id: [Init]Wait_for_all_tasks_to_register::0. "
     "This "
     "usually happens because a task triggered the barrier too early or too slowly.",
     "ayaka14732/llama-2-jax#20; AI-Hypercomputer/gpu-recipes#2"},
    {"jax-no-coordinator", ending, "http2 header with status", R"(Received http2 header with status: (\d+))",
     "the address of JAX's coordinator is answered by a different program (HTTP status {1}), for example by "
     "a proxy",
     "use the address and port of process 0 as `coordinator_address`; leave it out of the proxy with "
     "`no_proxy`",
     "env | grep -i proxy",
     "F1127 15:18:59.749528 7551 client.h:80] Terminating process because the JAX distributed service "
     "detected "
     "fatal errors. absl::Status: UNIMPLEMENTED: Received http2 header with status: 404",
     "source of gRPC, chttp2_transport.cc"},
    {"jax-not-registered", ending, "CoordinationService/RegisterTask", "",
     "this task could not register with JAX's coordinator: process 0 or a different task did not start in "
     "time",
     "start `num_processes` tasks, all of them with the same `coordinator_address`", "",
     "RPC: /xla.coordination.CoordinationService/RegisterTask", "source of XLA, client.cc"},
    {"jax-tasks-missing", hang, " tasks to connect", R"(Waiting for (\d+)/(\d+) tasks to connect)",
     "{1} of {2} tasks of the job did not connect to the coordinator, and their peers waited for them",
     "start all tasks, and compare their addresses and ports with `TF_CONFIG` or `coordinator_address`; read "
     "the logs of the missing ones",
     "", "I0000 00:00:1 7 coordination_service.cc:502] Waiting for 1/2 tasks to connect.",
     "source of XLA, coordination_service.cc"},
    {"jax-task-died", ending, "/task:",
     R"((?:^ *|[Tt]ask |task died:? .*)/job:(?:jax_worker|worker|chief|ps)/(?:\S*/)?task:(\d+)(?:$| heartbeat timeout))",
     "task {1} ended, or its heartbeats did not arrive", "read the log of task {1}", "",
     "UNAVAILABLE: Task /job:jax_worker/replica:0/task:37 heartbeat timeout. This indicates that the remote "
     "task has failed, got preempted, or crashed unexpectedly.\n"
     "/job:jax_worker/replica:0/task:3\n"
     "another task died: /job:jax_worker/replica:0/task:3",
     "jax-ml/jax#23599"},
    {"jax-peer-failed", effect,
     "another task died\nerror from coordination service\ntasks are unhealthy\nagent in error status",
     R"(another task died|[Pp]olled an error from coordination service|tasks are unhealthy|[Cc]oordination service agent in error status)",
     "a different task of the job failed first", "", "",
     "Terminating process because the JAX distributed service detected fatal errors. This most likely "
     "indicates that another task died; see the other task logs for more details.\n"
     "UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):",
     "source of XLA, coordination_service_agent.cc"},
    {"jaxlib-version", root, "this version of jax requires",
     R"(jaxlib is version ([\w.+-]+), but this version of jax requires version (>= ?[\w.+-]*\w))",
     "jaxlib {1} is too old for this jax, which needs {2}", "`pip install --upgrade jax jaxlib`",
     "pip show jax jaxlib",
     "RuntimeError: jaxlib is version 0.4.34, but this version of jax requires version >= 0.10.1.",
     "source of JAX, jax/_src/lib"},
    {"tensorflow-file-missing", root, "NotFoundError",
     R"(NotFoundError: (?:\{\{.*\}\} )?(/\S+); No such file)", "{1} does not exist on that node",
     "use a path that all nodes see, or copy it to each node before the start", "stoker check {started_from}",
     "tensorflow.python.framework.errors_impl.NotFoundError: {{function_node __wrapped__IteratorGetNext}} "
     "/data/part-6.tfrecord; No such file or directory [Op:IteratorGetNext] name:",
     "source of TensorFlow, posix_file_system.cc"},
    {"tensorflow-checkpoint-missing", root, "TensorSliceReader",
     R"(Failed to find any matching files for (\S+))", "there is no checkpoint {1}",
     "check the prefix: `ls {1}*`", "",
     "RuntimeError: Unsuccessful TensorSliceReader constructor: Failed to find any matching files for "
     "/ckpts/ckpt-41",
     "source of TensorFlow, tensor_slice_reader.cc"},
    {"jax-no-backend", root, "Unable to initialize backend",
     R"(^RuntimeError: Unable to initialize backend '(cuda|gpu|rocm|tpu)'(?:: (.*))?)",
     "JAX cannot use its backend {1}[[: {2}]]",
     "install a jaxlib for it (`pip install 'jax[cuda12]'`), on a node with that device", "nvidia-smi",
     "RuntimeError: Unable to initialize backend 'cuda': INTERNAL: no supported devices found for platform "
     "CUDA",
     "source of JAX, xla_bridge.py"},
    {"jax-on-cpu", slow, "CUDA-enabled jaxlib is not installed\nCannot dlopen some GPU libraries", "",
     "JAX or TensorFlow cannot use the GPU and runs on the CPU",
     "`pip install 'jax[cuda12]'`, or `pip install 'tensorflow[and-cuda]'`", "",
     "An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed. Falling back "
     "to cpu.\n"
     "Cannot dlopen some GPU libraries. Please make sure the missing libraries mentioned above are installed "
     "properly if you would like to use GPU.",
     "source of JAX, xla_bridge.py"},
};

}  // namespace

std::span<const FailureRule> jax_rules() { return kJaxRules; }

}  // namespace stoker::diagnose
