// The process that holds a node's namespaces: network, host name and mounts (private /etc/hosts,
// /etc/nsswitch.conf, /dev/shm, local disk). Namespaces mode only.
#pragma once

#include "lab/lab.h"
#include "stoker/bytes.h"

namespace stoker::lab {

/// The size of a node's local disk: small, so that filling it is quick.
constexpr ByteCount kLocalDisk = 256_MiB;

/// Starts the holder of a node and sets `node.holder`. Unavailable with the failed call.
Status start_holder(const Lab& lab, LabNode& node);
/// The same for the controller: this host's network and name, the lab's /etc/hosts; sets `lab.login`.
Status start_login_holder(Lab& lab);

}  // namespace stoker::lab
