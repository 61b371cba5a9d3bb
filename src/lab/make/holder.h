// The process that keeps a node's namespaces while its daemons come and go: network, host name and mounts
// (private /etc/hosts, /etc/nsswitch.conf, /dev/shm, local disk). Namespaces mode only.
#pragma once

#include "base/bytes.h"
#include "lab/lab.h"

namespace stoker::lab {

/// The size of a node's local disk: small, so that filling it is quick.
constexpr ByteCount kLocalDisk = 256_MiB;

/// Starts the holder of a node and sets `node.holder`. Unavailable naming the call the kernel refused.
Status start_holder(const Lab& lab, Node& node);
/// The same for the controller's place: this host's network and name, the lab's /etc/hosts; sets `lab.login`.
Status start_login_holder(Lab& lab);

}  // namespace stoker::lab
