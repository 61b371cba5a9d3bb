// Rules for programs without Python, for servers that a program needs, and for signals from outside.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kProgramRules[] = {
    {"timeout-command", outside, "timeout: sending signal", R"(timeout: sending signal (\w+) to command)",
     "the command `timeout` ended the program with SIG{1}: its time was over",
     "give it more time, or find where it waits: `py-spy dump --pid PID` while it runs", "",
     "timeout: sending signal TERM to command 'python'", "source of coreutils, timeout.c"},
    {"timeout-exit", ending, "124",
     R"((?i)\b(?:exit(?:ed)?|ended|ends|gave|returned|finished|stopped|rc|status|code|timeout)(?: with)?(?: exit)?(?: code| status)?[ :=]+124\b)",
     "the time of `timeout` was over: the program waited for something, or was slow (exit code 124)",
     "give it more time, or find where it waits: `py-spy dump --pid PID` while it runs", "", "exit code: 124",
     "source of coreutils, timeout.c"},
    {kDumpOnSignal, hang, "Current thread 0x",
     R"(^Current thread 0x[0-9a-f]+ (?:\[[^\]]*\] )?\(most recent call first\):)",
     "the program printed its stacks on a signal {frame}: it probably waited there",
     "read that line of the program: it waits for data, a file system or another process or thread", "",
     "Current thread 0x00007f2fa182db80 (most recent call first):", "source of CPython, faulthandler.c"},
    {"fork-of-threads", hang, "os.fork() was called", "",
     "processes were forked from a program with threads, as JAX has them: they can wait for ever",
     "start them with `multiprocessing.get_context('spawn')`, or use no JAX in them", "",
     "RuntimeWarning: os.fork() was called. os.fork() is incompatible with multithreaded code, and JAX is "
     "multithreaded, so this will likely lead to a deadlock.",
     "source of JAX, xla_bridge.py"},
    {"torchrun-hangup", outside, "got signal: 1\nSIGHUP death signal",
     R"(got signal: 1$|Received (?:Signals\.SIGHUP|1) death signal)",
     "torchrun received SIGHUP: its terminal or its ssh connection was closed",
     "start it with `sbatch`, in `tmux`, or with `nohup`", "",
     "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 1",
     "source of PyTorch, multiprocessing/api.py"},
    {"hangup", ending, "angup", R"((?:^|line \d+:\s+\d+ )Hangup\b)",
     "the program received SIGHUP: its terminal or its ssh connection was closed",
     "start it with `sbatch`, in `tmux`, or with `nohup`", "",
     "job.sh: line 5:  5794 Hangup                  python train.py", "source of bash, jobs.c"},
    {"extension-lock", hang, "(below torch.extension)",
     R"(^(?:Timeout \((\S+)\)!|KeyboardInterrupt\b.*) \(below torch\.extension\)$)",
     "a rank waited for the lock of a torch extension, which a different process builds, or left behind when "
     "it was killed {frame}",
     "if no process builds it, delete the lock: `rm ~/.cache/torch_extensions/*/*/lock`", "",
     "Timeout (0:01:00)! (below torch.extension)", "source of PyTorch, file_baton.py"},
    {"worker-lost-at-exit", ending,
     "object repr     : ", R"(^object repr +: (ConnectionResetError|BrokenPipeError|EOFError)\()",
     "a process that the program started died, probably a loader worker: {1}",
     "`num_workers=0` shows the sample and the traceback", "",
     "object repr     : ConnectionResetError(104, 'Connection reset by peer')",
     "source of CPython, object.c"},
    // Servers that do not run.
    {"proxy-failed", root, "ProxyError(\nProxyError: ",
     R"((?:ProxyError: .*)?ProxyError\('[^']*'(?:, .*?host='([\w.:-]+)', port=(\d+))?|ProxyError: )",
     "the proxy[[ {1}:{2}]] that the environment names does not answer or refuses",
     "`unset HTTPS_PROXY HTTP_PROXY ALL_PROXY https_proxy http_proxy` if none is needed, or set them to the "
     "proxy of your site",
     "env | grep -i proxy",
     "requests.exceptions.ProxyError: HTTPSConnectionPool(host='data.example.org', port=443): Max retries "
     "exceeded with url: /a (Caused by ProxyError('Unable to connect to proxy', "
     "NewConnectionError(\"HTTPSConnection(host='127.0.0.1', port=3128): Failed to establish a new "
     "connection: "
     "[Errno 111] Connection refused\")))",
     "source of urllib3, exceptions.py"},
    {"proxy-not-reached", root, "(below proxy)",
     R"((?:[Cc]onnection refused|timed out|[Nn]o route to host|[Nn]ame or service not known|[Tt]emporary failure in name resolution|403 Forbidden|407 Proxy).* \(below proxy\)$)",
     "the proxy that the environment names does not answer or refuses {frame}",
     "`unset HTTPS_PROXY HTTP_PROXY ALL_PROXY https_proxy http_proxy` if none is needed, or set them to the "
     "proxy of your site",
     "env | grep -i proxy", "httpcore.ConnectError: [Errno 111] Connection refused (below proxy)",
     "source of httpcore, http_proxy.py"},
    {"server-refused", root, "onnection refused\nErrno 111",
     R"(host='(localhost|::1|127\.[\d.]+|10\.[\d.]+|192\.168\.[\d.]+|172\.(?:1[6-9]|2\d|3[01])\.[\d.]+)', port=(\d+)\).*(?:refused|Errno 111)|host='([\w.:-]+)', port=(\d{4,5})\).*(?:refused|Errno 111))",
     "nothing listens on {1}{3}:{2}{4}: the server does not run there",
     "start the server, or correct its address; `localhost` is the node of the program, not the login node",
     "",
     "urllib3.exceptions.NewConnectionError: HTTPConnection(host='127.0.0.1', port=5000): Failed to "
     "establish a "
     "new connection: [Errno 111] Connection refused",
     "source of urllib3, connection.py"},
    {"port-refused", root, "onnection refused\nrror 111\nCouldn't connect to server",
     R"re((?:connecting to|connect(?:ion)? to(?: server at| host)?) "?([\w.-]+)"?(?::| port |, port | \([^)]*\), port )(\d+).*(?:[Cc]onnection refused|Couldn't connect to server))re",
     "nothing listens on {1}:{2}: the server does not run there",
     "start the server, or correct its address; `localhost` is the node of the program, not the login node",
     "",
     "redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.\n"
     "psycopg2.OperationalError: connection to server at \"localhost\" (127.0.0.1), port 5432 failed: "
     "Connection refused\n"
     "curl: (7) Failed to connect to localhost port 8265 after 0 ms: Connection refused",
     "source of redis, libpq and curl"},
    {"server-refused-url", general,
     "urlopen error [Errno 111]\nConnectionRefusedError: [Errno 111]\nNewConnectionError: <",
     R"(urlopen error \[Errno 111\]|ConnectionRefusedError: \[Errno 111\]|^(?:\w+\.)*NewConnectionError: <[^>]*>: .*Errno 111)",
     "a server refused the connection: it does not run at that address {frame}",
     "start the server, or correct its address; `localhost` is the node of the program, not the login node",
     "",
     "urllib.error.URLError: <urlopen error [Errno 111] Connection refused>\n"
     "urllib3.exceptions.NewConnectionError: <urllib3.connection.HTTPConnection object at 0x78>: Failed to "
     "establish a "
     "new connection: [Errno 111] Connection refused",
     "source of CPython, request.py"},
    {"jax-no-tpu", root, "Failed to open libtpu.so", R"(^(?:\w+\.)*\w*Error: .*Failed to open libtpu\.so)",
     "JAX cannot start its backend tpu: libtpu.so is not installed on that node",
     "use a node with TPUs and `pip install 'jax[tpu]'`, or `unset JAX_PLATFORMS`", "",
     "jax.errors.JaxRuntimeError: INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open shared object "
     "file: No "
     "such file or directory",
     "source of JAX, xla_bridge.py"},
    {"jax-tpu-probe", noise, "Failed to open libtpu.so", "", "", "", "",
     "Unable to initialize backend 'tpu': INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open shared "
     "object "
     "file: No such file or directory",
     "source of JAX, xla_bridge.py"},
    {"hub-offline", root, "outgoing traffic has been disabled\nOfflineModeIsEnabled\noffline mode is enabled",
     "",
     "files of the Hugging Face Hub are not in the cache of that node, and `HF_HUB_OFFLINE` forbids their "
     "download",
     "download them on a login node with the same `HF_HOME`: `hf download NAME`", "",
     "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk cache and "
     "outgoing traffic has been disabled.\n"
     "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/models: offline "
     "mode "
     "is enabled.",
     "source of huggingface_hub, file_download.py"},
    // MPI.
    {"mpi-truncated", root, "MPI_ERR_TRUNCATE\nMessage truncated", R"(MPI_ERR_TRUNCATE|: Message truncated)",
     "a message of MPI is longer than the buffer that receives it",
     "use the same count and type on both sides, or size the buffer with `MPI_Probe`", "",
     "[n1:05502] *** MPI_ERR_TRUNCATE: message truncated\n"
     "Fatal error in PMPI_Recv: Message truncated, error stack:",
     "source of Open MPI, errcode.c"},
    {"mpi-error", root, "*** MPI_ERR_\nFatal error in PMPI_\nFatal error in MPI_",
     R"(\*\*\* MPI_ERR_(\w+): (.*)|Fatal error in P?MPI_(\w+): ([^,]+))", "MPI failed: {2}{4} ({1}{3})",
     "compare the arguments of that call on all ranks: ranks, counts, types, communicator", "",
     "[n1:05502] *** MPI_ERR_RANK: invalid rank\nFatal error in PMPI_Bcast: Invalid root, error stack:",
     "source of Open MPI, errcode.c"},
    {kMpiCrashed, ending, "Signal: \non signal\nBY SIGNAL: ",
     R"(^\[[\w.-]+:\d+\] Signal: ([\w ]+) \((?:11|6|4|8)\)|exited on signal (?:11|6|4|8) \(([\w ]+)|BY SIGNAL: (?:11|6|4|8) \(([\w ]+))",
     "the program crashed: {1}{2}{3}",
     "build it with `-g`: `addr2line -Cfe PROGRAM ADDRESS` names the line of an address of its stack", "",
     "[n1:3599] Signal: Segmentation fault (11)\n"
     "mpirun noticed that process rank 2 with PID 7 on node n1 exited on signal 11 (Segmentation fault).\n"
     "=   KILLED BY SIGNAL: 11 (Segmentation fault)",
     "horovod/horovod#585; source of Intel MPI"},
    {kMpichCrashed, ending, "EXIT STRING: ", R"(EXIT STRING: ([\w /]+) \((signal (?:11|[4-8]))\))",
     "a rank of the program crashed: {1} ({2})",
     "build it with `-g -fsanitize=address,undefined`: the report names the line", "",
     "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Floating point exception (signal 8)",
     "source of MPICH, hydra"},
    {"python-crashed", ending, "Segmentation fault\nAborted",
     R"(: line \d+:\s+\d+ (Segmentation fault|Aborted)\s.*\bpython)", "the program crashed: {1}[[: {4}]]",
     "`python -X faulthandler` shows where", "", "job.sh: line 5: 12 Aborted                 python train.py",
     "source of bash, jobs.c"},
    {"divided-by-zero", ending, "Floating point exception",
     R"((?:^|: line \d+:\s+\d+ )Floating point exception\s*(?:\(core dumped\) ?)?\s*(?:(?:\./|/)?(?:\S*/)?([\w.+-]+)(?:\s.*)?)?$)",
     "the program[[ {1}]] crashed: it divided an integer by zero[[: {4}]]",
     "check the numbers that it got, for example a count of parts or ranks that is 0; `gdb -batch -ex run "
     "-ex "
     "bt --args PROGRAM` shows where",
     "", "job.sh: line 3: 14808 Floating point exception./decomp 1000 0", "source of bash, jobs.c"},
    {"program-crashed", ending, "Segmentation fault\nAborted\nFloating point exception",
     R"(: line \d+:\s+\d+ (Segmentation fault|Aborted|Floating point exception)\s*(?:\(core dumped\) )?\s*(?:\./|/)?(?:\S*/)?([\w.+-]+)(?:\s+[^;|&]*)?$)",
     "the program {2} crashed: {1}[[: {4}]]", "`gdb -batch -ex run -ex bt --args PROGRAM` shows where", "",
     "job.sh: line 5: 12 Segmentation fault      (core dumped) ./solve a.dat", "source of bash, jobs.c"},
    // Dask.
    {"dask-worker-memory", ending, "memory budget",
     R"(Worker (\S+) \(pid=\d+\) exceeded (\d+)% memory budget)",
     "a worker of dask exceeded {2} % of its memory limit, and dask restarted it",
     "use smaller chunks or partitions, fewer threads per worker, or a larger `memory_limit`", "",
     "2026-11-27 18:26:50,857 - distributed.nanny.memory - WARNING - Worker tcp://127.0.0.1:40319 "
     "(pid=22053) "
     "exceeded 95% memory budget. Restarting...",
     "source of distributed, worker_memory.py"},
    {"dask-killed-worker", root, "KilledWorker\nworkers died while",
     R"(KilledWorker|different workers, but all those workers died while running it)",
     "dask gave up a task: each worker that ran it died, out of memory or by a crash",
     "read the logs of its workers: for memory smaller chunks or a larger `memory_limit`; for a crash in "
     "native code run that task alone, with `python -X faulthandler`",
     "",
     "distributed.scheduler.KilledWorker: Attempted to run task 'big-3' on 4 different workers, but all "
     "those "
     "workers died while running it.",
     "source of distributed, scheduler.py"},
    // Compilers of extensions.
    {"compiler-not-found", root, "FAILED: [code=127]\n/bin/sh: 1: \nccache: error: ",
     R"(FAILED: \[code=127\]|ccache: error: execute_noreturn of (\S+) failed: No such file|/bin/sh: 1: (\S*/nvcc|g\+\+|c\+\+|gcc|cc|clang\+\+|nvcc|x86_64[\w-]+): not found)",
     "a compiler[[ ({1})]][[ ({2})]] to build an extension was not found on that node",
     "load one (`module load cuda gcc`) and `export CXX=g++`, or build the extension earlier on a login node",
     "c++ --version",
     "FAILED: [code=127] cpu_adam.o\n/bin/sh: 1: c++: not found\n"
     "ccache: error: execute_noreturn of /usr/local/bin/g++-14 failed: No such file or directory",
     "source of ninja, build.cc"},
    {"header-missing", root, "fatal error: ", R"(fatal error: (\S+): No such file or directory)",
     "a header to build an extension is missing: {1}",
     "load the module or install the package that has it: CUDA for `cuda_runtime.h`, Python's development "
     "files "
     "for `Python.h`",
     "", "a.cpp:1:10: fatal error: Python.h: No such file or directory", "source of GCC"},
    {"extension-build-failed", general, "Error building extension", R"(Error building extension '(\w+)')",
     "building the extension {1} failed", "build it earlier on a login node, with `module load cuda gcc`", "",
     "RuntimeError: Error building extension 'fused_adam'", "source of PyTorch, cpp_extension.py"},
};

}  // namespace

std::span<const FailureRule> program_rules() { return kProgramRules; }

}  // namespace stoker::diagnose
