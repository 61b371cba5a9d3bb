// Rules for rendezvous: stores, names, ports, interfaces.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kRendezvousRules[] = {
    {"port-in-use", root, "errno: 98\nEADDRINUSE\nAddress already in use",
     R"((?:(?:(?:c10d|TCPStore|socket\.cpp|ProcessGroup).*)?failed to bind to (\S+) \((?:errno|generic error): 98|port: (\d+), useIpv6: \w+, code: -98|^RuntimeError: Address already in use|(?:c10d|TCPStore|socket\.cpp|ProcessGroup).*(?:EADDRINUSE|Address already in use)))",
     "the rendezvous port {1}{2} is in use, by another job or a leftover process",
     "derive the port from the job id: `export MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))`", "ss -ltnp",
     "[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address "
     "already in use).\n"
     "RuntimeError: The server socket has failed to listen on any local network address. port: 29500, "
     "useIpv6: 0, code: "
     "-98, name: EADDRINUSE, message: address already in use",
     "pytorch/pytorch#126510"},
    {"port-of-program-in-use", root, "ddress already in use\nEADDRINUSE",
     R"re((?:\('[^']*', (\d+)\)|[\w\]]:(\d{4,5})\b).*ddress already in use|ddress already in use(?:.*[: ](\d{2,5})$)?|EADDRINUSE)re",
     "the port[[ {1}]][[ {2}]][[ {3}]] that the program opens is in use, by another job or a leftover "
     "process "
     "{frame}",
     "use a different port, or 0 for a free one; end the process that uses it", "ss -ltnp",
     "OSError: [Errno 98] Address already in use\n"
     "OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in "
     "use",
     "source of CPython, socketmodule.c"},
    {"gloo-no-interface", root, "Unable to find address for", R"(Unable to find address for: (\S+))",
     "GLOO_SOCKET_IFNAME names {1}, which is not an interface with an address here",
     "set `GLOO_SOCKET_IFNAME` to one name from `ip -br addr` (gloo does not support '^'), or unset it",
     "stoker hello",
     "RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:83] ifa != nullptr. "
     "Unable to find "
     "address for: ib7",
     "aws-samples/awsome-distributed-training; aws-do-eks#51"},
    {"gloo-loopback", root, "Using the loopback address as fallback", "",
     "the node's name has no address that peers can reach: gloo uses 127.0.0.1",
     "set `GLOO_SOCKET_IFNAME` to the interface common to all nodes", "stoker hello --nodes 2",
     "[W ProcessGroupGloo.cpp:715] Warning: Unable to resolve hostname to a (local) address. Using the "
     "loopback address as "
     "fallback. Manually set the network interface to bind to with GLOO_SOCKET_IFNAME.",
     "aws-do-eks#50"},
    {"hostname-not-local", root, "to a (local) address", R"(Cannot resolve (\S+) to a \(local\) address)",
     "the node's name {1} does not resolve to a local address",
     "set `GLOO_SOCKET_IFNAME` to the interface common to all nodes", "stoker hello",
     "RuntimeError: Cannot resolve n7 to a (local) address", "source of PyTorch, ProcessGroupGloo.cpp"},
    {"gloo-full-mesh", root, "connectFullMesh failed", R"(Gloo connectFullMesh failed with (.*))",
     "the ranks cannot all connect to each other: {1}",
     "set `GLOO_SOCKET_IFNAME` to the common interface; with many ranks raise `ulimit -n`",
     "stoker hello --nodes 2",
     "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no "
     "error",
     "sgl-project/sglang#3226"},
    {"gloo-connect-failed", root, "gloo",
     R"(gloo/transport/tcp/pair\.cc:\d+\] (?:connect|timed out connecting|SO_ERROR).*?(\[[^\]]+\](?::\d+)?)?:? ?(Connection refused|No route to host|Connection timed out|Network is unreachable))",
     "gloo could not connect[[ to {1}]]: {2}",
     "set `GLOO_SOCKET_IFNAME` to the common interface; open the ports between nodes",
     "stoker hello --nodes 2",
     "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:799] connect [10.9.0.1]:32012: "
     "Connection refused",
     "source of gloo, pair.cc"},
    {"master-not-reached", root,
     "client socket has timed out after\nfailed to connect to any network address",
     R"(client socket has (?:timed out after \S+ while trying to connect|failed to connect) to (?:any network address of )?\(([^,]+), (\d+)\))",
     "no answer at {1} port {2}: rank 0 is not up, or the address is wrong",
     "use the first node, `export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -1)`, and "
     "read the log of rank 0",
     "stoker hello --nodes 2",
     "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to "
     "connect to (n1, "
     "29500).\n[E socket.cpp:753] [c10d] The client socket has failed to connect to any network address of "
     "(n1, 47389).",
     "hpcaitech/Open-Sora#667"},
    {"connect-tried", effect, "client socket has failed to connect",
     R"(failed to connect to (\S+) \(errno: \d+ - ([^)]*)\))",
     "the first attempt to connect to {1} failed ({2})", "", "",
     "[W socket.cpp:697] [c10d] The client socket has failed to connect to [n1]:47389 (errno: 110 - "
     "Connection timed out).",
     "hpcaitech/Open-Sora#667"},
    {"clients-missing", root, "waiting for clients",
     R"(Timed out after (\d+) seconds waiting for clients\. (\d+)/(\d+) clients joined)",
     "only {2} of {3} ranks joined the rendezvous within {1} s: the remaining ranks never started, or cannot "
     "reach rank 0",
     "set `WORLD_SIZE` to the number of tasks on all nodes, and start the command with `srun`",
     "stoker check {started_from}",
     "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 6/8 clients joined.",
     "source of PyTorch, TCPStore.cpp"},
    {"rendezvous-timeout", root, "RendezvousTimeoutError\nRendezvousConnectionError",
     R"((Rendezvous(?:Timeout|Connection)Error)(.*))", "some nodes did not join torchrun's rendezvous",
     "use the same `--rdzv-endpoint` on all nodes and one torchrun per node: `srun --ntasks-per-node=1`",
     "stoker hello --nodes 2", "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
     "source of PyTorch, dynamic_rendezvous.py"},
    {"hub-unreachable", root, "We couldn't connect to 'http\nthrown while requesting",
     R"((?:thrown while requesting [A-Z]+ |We couldn't connect to ')(https?://[^/'\s]+))",
     "that node does not reach {1}, and the files are not in the cache",
     "download on a login node first, with the same `HF_HOME`, and set `HF_HUB_OFFLINE=1` for the job",
     "stoker check {started_from}",
     "'[Errno -2] Name or service not known' thrown while requesting HEAD "
     "https://huggingface.co/a/b/resolve/main/config.json\n"
     "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in "
     "the "
     "cached files.",
     "source of transformers, hub.py"},
    {"hub-gated", root, "GatedRepoError\nCannot access gated repo\naccess a gated repo\n is restricted",
     R"((?:[Cc]annot access gated repo for url https?://[^/]+/(?:datasets/|spaces/|api/models/)?([^/\s]+/[^/\s]+)|Access to (?:model|dataset) (\S+) is restricted|GatedRepoError|You are trying to access a gated repo))",
     "no access to a gated repository of Hugging Face[[: {1}]][[: {2}]] {frame}",
     "accept its conditions on its page, then log in on a login node (`hf auth login`) or set `HF_TOKEN`", "",
     "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-68b1)\n"
     "Cannot access gated repo for url https://huggingface.co/a/b/resolve/main/config.json.\n"
     "OSError: You are trying to access a gated repo.",
     "source of huggingface_hub, errors.py; source of transformers, hub.py"},
    {"hub-no-repository", root, "RepositoryNotFoundError",
     R"(RepositoryNotFoundError: (40[134])\b(?:.*Repository Not Found for url: (\S+?)\.?$)?)",
     "Hugging Face has no such repository, or it is private[[ ({1})]][[: {2}]] {frame}",
     "correct its name; for a private one log in on a login node (`hf auth login`) or set `HF_TOKEN`", "",
     "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error. (Request ID: Root=1-68b1)",
     "source of huggingface_hub, errors.py"},
    {"name-of-ssh", root, "ould not resolve hostname", R"(ould not resolve hostname (\S+?):)",
     "ssh does not find {1}: its name does not resolve here",
     "correct that name: in the list of hosts (`scontrol show hostnames`), in `~/.ssh/config`, or in the "
     "address of the repository",
     "getent hosts {1}", "ssh: Could not resolve hostname cn07: Name or service not known",
     "source of OpenSSH, ssh.c"},
    {"name-of-server", root,
     "urlopen error [Errno -\ngaierror: [Errno -\nFailed to resolve '\nCould not resolve host: \nCould not "
     "resolve "
     "proxy\nunable to resolve host\nResolving \nTemporary failure resolving '",
     R"re((?:host='([^']+)'.*)?(?:urlopen error \[Errno -[235]\]|gaierror: \[Errno -[235]\]|Failed to resolve '([^']+)'|Could not resolve (?:host|proxy): (\S+)|(?:^Resolving |unable to resolve host address (?:['"`]|‘)|Temporary failure resolving ')([^\s'"’]+)(?:'|’| .*failed: )))re",
     "the name of a server[[, {1}]][[, {2}]][[, {3}]][[, {4}]] does not resolve on that node {frame}",
     "check its spelling; if the node has no internet, download on a login node first", "getent hosts NAME",
     "urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>\n"
     "socket.gaierror: [Errno -3] Temporary failure in name resolution\n"
     "curl: (6) Could not resolve host: data.example.org",
     "source of CPython, socketmodule.c"},
    {"name-not-resolved", root,
     "gai error\nName or service not known\nTemporary failure in name resolution\ncannot be retrieved",
     R"(^(?:.*The IPv[46] network addresses of \(([^,]*), \d+\) cannot be retrieved|.*gai error|.*(?:c10d|[Gg]loo|NCCL|MASTER|rendezvous).*(?:Name or service not known|Temporary failure in name resolution)))",
     "the name[[ {1}]] does not resolve on that node",
     "use an address or the full name in `MASTER_ADDR`, without blanks", "stoker hello",
     "[W socket.cpp:464] [c10d] The IPv6 network addresses of (n1, 29500) cannot be retrieved (gai error: -2 "
     "- Name or "
     "service not known).",
     "pytorch/pytorch#121807"},
    {"name-not-known", root, "Name or service not known\nTemporary failure in name resolution",
     R"((?:([\w-]+(?:\.[\w-]+)*): )?(?:Name or service not known|Temporary failure in name resolution))",
     "a name[[, {1},]] does not resolve on that node {frame}",
     "check its spelling; if the node has no internet, download on a login node first", "getent hosts NAME",
     "ping: data.example.org: Name or service not known", "source of glibc, gai_strerror.c",
     kScriptContinues},
    {"no-network", root,
     "MaxRetryError\nConnectionError\nNewConnectionError\nOfflineModeIsEnabled\nLocalEntryNotFoundError\nRepo"
     "sitoryNotFoundError\nOSError: [Errno 101]\nurlopen error",
     R"((?:^OSError: \[Errno 101\] |urlopen error \[Errno (?:101|110|111)\] |Max retries exceeded with url|NewConnectionError|ConnectionError: .*(huggingface|github|pypi|wandb|amazonaws)|OfflineModeIsEnabled|LocalEntryNotFoundError))",
     "the program needs the internet, which this node cannot reach",
     "download on a login node first; set `HF_HUB_OFFLINE=1` or `WANDB_MODE=offline` for the job",
     "stoker check {started_from}",
     "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries "
     "exceeded with "
     "url: /bert\nhuggingface_hub.utils._errors.LocalEntryNotFoundError: An error happened while trying to "
     "locate the file\nOSError: [Errno 101] Network is unreachable\nurllib.error.URLError: <urlopen error "
     "[Errno 101] "
     "Network is unreachable>",
     "huggingface/transformers#20728"},
    {"environment-variable-missing", root,
     "expected, but not set\nKeyError: 'LOCAL_RANK\nKeyError: 'RANK\nKeyError: 'WORLD_SIZE\nKeyError: "
     "'MASTER_",
     R"((?:environment variable (\w+) expected, but not set|KeyError: '(LOCAL_RANK|RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT)'))",
     "{1}{2} is not set: the program was started without a launcher {frame}",
     "start it with torchrun, with `stoker run`, or with srun and the variables set",
     "stoker check {started_from}",
     "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK "
     "expected, "
     "but not set\nKeyError: 'LOCAL_RANK'",
     "pytorch/pytorch#37377"},
    {"no-libuv", root, "use_libuv was requested", "", "this torch was built without libuv",
     "set `USE_LIBUV=0`", "",
     "torch.distributed.DistStoreError: use_libuv was requested but PyTorch was built without libuv support, "
     "run with "
     "USE_LIBUV=0 to disable it.",
     "pytorch/pytorch#136006"},
    {"store-key-missing", hang, "wait timeout after", R"(wait timeout after (\d+)ms, keys: (\S+))",
     "a rank did not publish {2} within {1} ms: it is behind",
     "read the log of the missing rank: it started late, waits or failed; for a slow start a longer "
     "`timeout` "
     "of "
     "`init_process_group`",
     "", "torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /default_pg/0//cuda//7",
     "source of PyTorch, TCPStore.cpp"},
    {"nccl-id-not-set", hang, "ncclUniqueId", R"(ncclUniqueId from \[0\].*got error: (.*))",
     "rank 0 did not join the first collective: {1}", "read the log of rank 0", "",
     "RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d "
     "key-value store by "
     "store->get('0'), but store->get('0') got error: Socket Timeout",
     "pytorch/pytorch#82091"},
    {"store-host-gone", effect,
     "Connection was likely closed\nBroken pipe\nrecvValue failed\nsendBytes failed\nrecvVector failed",
     R"((?:Connection was likely closed|failed on SocketImpl|recvValue failed|recvVector failed|sendBytes failed))",
     "the rank with the store exited", "", "",
     "torch.distributed.DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. Did the "
     "remote server "
     "shutdown or crash?",
     "source of PyTorch, TCPStoreLibUvBackend.cpp"},
    // several, more than the backlog
    {"somaxconn", slow, "somaxconn is", R"(Starting store with (\d+) workers but somaxconn is (\d+))",
     "{1} ranks may not all connect to the store at once: the host's listen backlog is {2}",
     "increase `net.core.somaxconn` on the nodes (administrators)", "",
     "Starting store with 100000 workers but somaxconn is 4096. This might cause instability during "
     "bootstrap",
     "source of PyTorch, TCPStore.cpp"},
};

}  // namespace

std::span<const FailureRule> rendezvous_rules() { return kRendezvousRules; }

}  // namespace stoker::diagnose
